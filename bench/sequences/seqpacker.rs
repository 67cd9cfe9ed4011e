// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// seqpacker FILE CAPACITY WINDOW TAKES: packs the lengths in a file of 32-bit numbers, WINDOW at a time, with the fastest
// entry of the crate seqpacker, which takes lengths and gives lists of numbers. A line for each window: the number of rows,
// and the seconds of the fastest of TAKES.

use seqpacker::algorithms::optimized_best_fit_decreasing::optimized_best_fit_decreasing_lengths as pack;
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize| arguments[i].parse::<usize>().unwrap();
    let bytes = std::fs::read(&arguments[1]).unwrap();
    let lengths: Vec<usize> =
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize).collect();
    for window in lengths.chunks(number(3)) {
        let (mut rows, mut seconds) = (0, f64::MAX);
        for _ in 0..number(4) {
            let begin = Instant::now();
            let made = black_box(pack(black_box(window), number(2)).unwrap());
            seconds = seconds.min(begin.elapsed().as_secs_f64());
            rows = made.len();
        }
        println!("{rows} {seconds:.9}");
    }
}
