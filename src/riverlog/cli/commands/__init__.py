"""A module for each command or group of commands: plain functions, loaded when they are called."""
