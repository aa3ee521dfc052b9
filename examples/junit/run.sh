#!/bin/sh
# Compiles these files and runs their tests with Debian's JDK and junit5, without Maven. Arguments go to JUnit's launcher.
set -eu
cd "$(dirname "$0")"
# This jar refers to the other jars of JUnit.
junit=${JUNIT:-/usr/share/java/junit-platform-console-standalone.jar}
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
javac -d "$classes" -cp "$junit" berth/*.java example/*.java
cp junit-platform.properties "$classes"
java -jar "$junit" --class-path "$classes" --scan-class-path --disable-banner "$@"
