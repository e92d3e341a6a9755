"""Connections to brokers: pipelined, encrypted and logged in where asked, and the cluster as they show it."""
