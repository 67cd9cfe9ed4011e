// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

/// What main.cpp knows of step.cu: functions that launch kernels on a stream and return at once.

/// One step of a linear classifier of 10 classes on `count` samples of `length` numbers: the gradient of the
/// logistic loss is taken from the weights (`10 * length` of them).
void train_step(const float* samples, const std::int64_t* labels, std::size_t count, std::size_t length,
                float* weights, float rate, cudaStream_t stream);

/// Adds the number of samples that the weights put into the right class.
void count_right(const float* samples, const std::int64_t* labels, std::size_t count, std::size_t length,
                 const float* weights, unsigned* right, cudaStream_t stream);
