# rows-with-schedule.sh FILE SETTINGS: a softmax with such a schedule.
printf 'kernel rows(x: f32[M, N]) -> (y: f32[M, N]) {\n  y[i, j] = softmax(x[i, j], over=j)\n  schedule { %s }\n}\n' "$2" > "$1"
