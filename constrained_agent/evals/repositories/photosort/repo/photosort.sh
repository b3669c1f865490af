#!/bin/sh
# Sorts the pictures of a camera card into an album, one folder for each month:
#
#   sh photosort.sh CARD ALBUM
#
# A picture is a file whose name begins with its date, such as "2023-07-14 Lake at dawn.jpg".
# Other files are left alone. A picture that the album has already is skipped, never overwritten.
set -u

if [ $# -ne 2 ]; then
  echo "usage: photosort.sh CARD ALBUM" >&2
  exit 2
fi
card=$1
album=$2
if [ ! -d "$card" ]; then
  echo "photosort: $card is not a folder" >&2
  exit 2
fi

copied=0
skipped=0
ignored=0

for name in $(ls "$card"); do
  case $name in
    [12][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]*) ;;
    *)
      ignored=$((ignored + 1))
      continue
      ;;
  esac
  year=$(printf '%s' "$name" | cut -c 1-4)
  month=$(printf '%s' "$name" | cut -c 6-7)
  folder=$album/$year/$month
  if [ -e $folder/$name ]; then
    skipped=$((skipped + 1))
    continue
  fi
  mkdir -p $folder || exit 1
  cp -p $card/$name $folder/$name || exit 1
  copied=$((copied + 1))
done

echo "$copied copied, $skipped skipped, $ignored ignored"
