import unittest

import nmea
from nmea import NmeaError, framed, read


def bearing(kind, true="154.0", magnetic="150.5"):
    return read(framed(f"GP{kind},081837,3430.00,S,01030.00,E,{true},T,{magnetic},M,12.5,N,BUOY 7"))


class Waypoints(unittest.TestCase):
    def test_rhumb_line(self):
        self.assertEqual(
            bearing("BWR"), ("081837", -34.5, 10.5, 154.0, 150.5, 12.5, "BUOY 7"), "true first, then magnetic"
        )
        self.assertIsNone(bearing("BWR", magnetic="").bearing_magnetic_deg)
        self.assertEqual(bearing("BWR", magnetic="").bearing_true_deg, 154.0)
        self.assertIsNone(bearing("BWR", true="").bearing_true_deg)

    def test_its_relatives(self):
        for kind in ("BEC", "BWC"):
            self.assertEqual(bearing(kind).bearing_true_deg, 154.0, kind)
            self.assertEqual(bearing(kind).bearing_magnetic_deg, 150.5, kind)

    def test_others(self):
        self.assertEqual(read(framed("GPBOD,97.0,T,103.2,M,POINTB,POINTA")), (97.0, 103.2, "POINTB", "POINTA"))
        self.assertEqual(read(framed("GPXTE,A,V,0.67,L,N")), (-0.67, False))
        self.assertEqual(read(framed("GPWPL,4917.25,N,12318.60,W,4")).longitude, -123.31)
        destination = read(framed("GPRMB,A,0.66,L,003,004,4917.24,N,12309.57,W,001.3,052.5,000.5,V"))
        self.assertEqual((destination.bearing_true_deg, destination.arrived), (52.5, False))


class Receivers(unittest.TestCase):
    def test_fixes(self):
        fix = read(framed("GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,"))
        self.assertAlmostEqual(fix.latitude, 48.1173)
        self.assertEqual((fix.quality, fix.n_satellites, fix.geoid_m), ("autonomous", 8, 46.9))
        self.assertEqual(read(framed("GNGNS,,,,,,NR,,,,,,")).quality, "rtk fixed")
        self.assertIsNone(read(framed("GPGLL,,,,,123519,V")).latitude)
        self.assertEqual(read(framed("GPRMC,1,A,0000.0,S,00000.0,W,5,90,,003.1,W")).variation_deg, -3.1)

    def test_satellites(self):
        view = read(framed("GPGSV,3,3,09,22,42,067,42,24,,,"))
        self.assertEqual(view.satellites, ((22, 42, 67, 42), (24, None, None, None)))
        used = read(framed("GPGSA,A,3,04,05,,09,12,,,24,,,,,2.5,1.3,2.1"))
        self.assertEqual((used.dimensions, used.numbers, used.vdop), (3, (4, 5, 9, 12, 24), 2.1))

    def test_errors(self):
        self.assertEqual(read(framed("GPGST,1,2,3,4,5,6,7,8")), ("1", 6, 7, 8))
        self.assertEqual(read(framed("GPGBS,1,2,3,4,5,6,7,8")), ("1", 2, 3, 4))


class Instruments(unittest.TestCase):
    def test_course_and_speed(self):
        self.assertAlmostEqual(read(framed("GPVTG,054.7,T,034.4,M,,N,18.52,K")).speed_kn, 10)
        self.assertEqual(read(framed("VWVHW,1,T,2,M,3,N,,K")), (1, 2, 3))
        self.assertEqual(read(framed("HCHDG,98.3,1.5,E,12.6,W")), (98.3, "sensor", 1.5, -12.6))
        self.assertEqual(read("$HEHDT,274.07,T*19").heading_deg, 274.07)

    def test_depths(self):
        self.assertEqual(read(framed("SDDBT,,f,3.5,M,,F")), (3.5, "transducer"))
        self.assertAlmostEqual(read(framed("SDDBK,10,f,,M,,F")).depth_m, 3.048)
        self.assertEqual(read(framed("SDDPT,4.0,-1.5")), (2.5, "keel"))

    def test_wind(self):
        self.assertEqual(read(framed("WIMWV,214.8,R,1.852,K,A")), (214.8, 1.0, False, True))
        self.assertEqual(read(framed("WIVWR,45,L,12,N,,M,,K")).angle_deg, 315)
        self.assertEqual(read(framed("WIMWD,10,T,8,M,5,N,2.6,M")), (10, 8, 5))

    def test_transducers_and_texts(self):
        air, roll = read(framed("YXXDR,C,19.5,C,AIR,A,-2,D,ROLL"))
        self.assertEqual((air.kind, roll.value), ("temperature", -2))
        self.assertEqual(read(framed("GPTXT,01,01,02,one^2C two,three")).text, "one, two,three")


class Lines(unittest.TestCase):
    def test_refusals(self):
        for line in ("", "HEHDT,1,T", "$HEHDT,1,T*00", framed("XXABC,1"), framed("HEHDT,1"), framed("HEHDT,x,T")):
            with self.subTest(line), self.assertRaises(NmeaError):
                read(line)

    def test_many(self):
        found, n_bad = nmea.read_all([framed("HEHDT,1,T"), "noise", framed("SDDPT,4.0,")])
        self.assertEqual(([type(each).__name__ for each in found], n_bad), (["Heading", "Depth"], 1))


if __name__ == "__main__":
    unittest.main()
