// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "step.hpp"

#include <cmath>

namespace {

constexpr unsigned classes = 10, threads = 128;

/// Scores of one sample for all classes, by the threads of a block; in shared memory.
__device__ void score(const float* sample, unsigned length, const float* weights, float* scores) {
  __shared__ float parts[threads];
  for (unsigned c = 0; c < classes; ++c) {
    float sum = 0;
    for (unsigned i = threadIdx.x; i < length; i += threads) sum += weights[c * length + i] * sample[i];
    parts[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = threads / 2; half != 0; half /= 2) {
      if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
      __syncthreads();
    }
    if (threadIdx.x == 0) scores[c] = parts[0];
    __syncthreads();
  }
}

__global__ void step_kernel(const float* samples, const std::int64_t* labels, unsigned length, float* weights,
                            float rate) {
  __shared__ float scores[classes];
  const float* const sample = samples + static_cast<std::size_t>(blockIdx.x) * length;
  score(sample, length, weights, scores);
  float largest = scores[0], sum = 0;
  for (unsigned c = 1; c < classes; ++c) largest = fmaxf(largest, scores[c]);
  for (unsigned c = 0; c < classes; ++c) sum += expf(scores[c] - largest);
  for (unsigned c = 0; c < classes; ++c) {
    const float wrong = expf(scores[c] - largest) / sum - (labels[blockIdx.x] == c ? 1.0f : 0.0f);
    for (unsigned i = threadIdx.x; i < length; i += threads)
      atomicAdd(weights + c * length + i, -rate * wrong * sample[i]);
  }
}

__global__ void count_kernel(const float* samples, const std::int64_t* labels, unsigned length,
                             const float* weights, unsigned* right) {
  __shared__ float scores[classes];
  score(samples + static_cast<std::size_t>(blockIdx.x) * length, length, weights, scores);
  if (threadIdx.x != 0) return;
  unsigned best = 0;
  for (unsigned c = 1; c < classes; ++c)
    if (scores[c] > scores[best]) best = c;
  if (labels[blockIdx.x] == best) atomicAdd(right, 1u);
}

}  // namespace

void train_step(const float* samples, const std::int64_t* labels, std::size_t count, std::size_t length,
                float* weights, float rate, cudaStream_t stream) {
  step_kernel<<<static_cast<unsigned>(count), threads, 0, stream>>>(
      samples, labels, static_cast<unsigned>(length), weights, rate / static_cast<float>(count));
}

void count_right(const float* samples, const std::int64_t* labels, std::size_t count, std::size_t length,
                 const float* weights, unsigned* right, cudaStream_t stream) {
  count_kernel<<<static_cast<unsigned>(count), threads, 0, stream>>>(
      samples, labels, static_cast<unsigned>(length), weights, right);
}
