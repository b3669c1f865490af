#!/bin/sh
# Prints the configuration of a wireless access point:
#
#   sh accesspoint.sh radio|lease|guests NAME CHANNEL
#
# The programs that read it take no line that begins with a blank. The here-documents below are
# indented with tabs, which <<- takes away.
set -eu

if [ $# -ne 3 ]; then
	echo "usage: accesspoint.sh radio|lease|guests NAME CHANNEL" >&2
	exit 2
fi
part=$1
name=$2
channel=$3

radio() {
	if [ "$channel" -gt 14 ]; then
		mode=a
	else
		mode=g
	fi
	cat <<-END
		interface=wlan0
		ssid=$name
		hw_mode=$mode
		channel=$channel
		max_num_sta=32
		ap_isolate=0
	END
}

lease() {
	cat <<-END
		interface=wlan0
		dhcp-range=10.20.0.50,10.20.0.150,12h
		dhcp-option=option:router,10.20.0.1
	END
}

guests() {
	cat <<-END
		interface=wlan1
        ssid=$name guests
        hw_mode=g
		channel=$channel
		max_num_sta=8
	    ap_isolate=0
	END
}

case $part in
	radio | lease | guests)
		echo "# $part of $name"
		"$part"
		;;
	*)
		echo "accesspoint: no such part: $part" >&2
		exit 2
		;;
esac
