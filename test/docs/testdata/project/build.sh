#!/bin/sh
# Stands for a reader's build.
curl -sSf https://registry.npmjs.org/left-pad && curl -sSf https://api.example.com/
