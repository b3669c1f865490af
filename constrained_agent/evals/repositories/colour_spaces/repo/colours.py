"""Colours as hexadecimal codes, as red, green and blue, and as hue, saturation and lightness."""

import string


def from_hex(code):
    """Red, green and blue (0 to 255) of #rrggbb, or of #rgb, which stands for #rrggbb."""
    digits = code[1:] if code.startswith("#") else code
    if len(digits) not in (3, 6) or set(digits) - set(string.hexdigits):
        raise ValueError(f"not a colour: {code!r}")
    if len(digits) == 3:
        digits = "".join(digit + "0" for digit in digits)
    return tuple(int(digits[start : start + 2], 16) for start in (0, 2, 4))


def to_hex(red, green, blue):
    """#rrggbb of three values from 0 to 255."""
    return f"#{red:02x}{green:02x}{blue:02x}"


def to_hsl(red, green, blue):
    """Hue in degrees (0 up to, not including, 360), saturation and lightness in percent, all rounded."""
    red, green, blue = red / 255, green / 255, blue / 255
    highest, lowest = max(red, green, blue), min(red, green, blue)
    lightness = (highest + lowest) / 2
    spread = highest - lowest
    if spread == 0:
        return 0, 0, round(lightness * 100)

    if highest == red:
        sixths = (green - blue) / spread
    elif highest == green:
        sixths = (blue - red) / spread + 2
    else:
        sixths = (red - green) / spread + 4
    saturation = spread / (1 - abs(2 * lightness - 1))
    return round(sixths * 60), round(saturation * 100), round(lightness * 100)


def contrast(first, second):
    """The WCAG contrast ratio of two colours given as (red, green, blue), from 1 to 21."""
    brighter, darker = sorted((luminance(*first), luminance(*second)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(red, green, blue):
    """The relative luminance, from 0 (black) to 1 (white)."""
    linear = []
    for value in (red / 255, green / 255, blue / 255):
        linear.append(value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
