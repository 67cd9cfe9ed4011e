// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What tests of runs on the fake runtime have in common.

#include "support/catch.hpp"
#include "support/fake_cuda.hpp"

#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace penstock_test {

/// A fresh fake; its destructor checks that everything was released exactly once.
struct fresh_fake {
  fake_cuda& fake = fake_cuda::get();
  fresh_fake() { fake.reset(); }
  ~fresh_fake() {
    CHECK(fake.live() == 0);
    CHECK(!fake.misused);
    fake.reset();
  }
  /// A CUDA stream of the program.
  struct stream {
    cudaStream_t it = nullptr;
    explicit stream(int device = 0) {
      const int before = std::exchange(fake_cuda::current(), device);
      REQUIRE(cudaStreamCreateWithFlags(&it, cudaStreamNonBlocking) == cudaSuccess);
      fake_cuda::current() = before;
    }
    ~stream() { cudaStreamDestroy(it); }
  };
};

inline std::vector<int> numbers(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

template <class T>
std::vector<T> on_device(const void* data, std::size_t count) {
  std::vector<T> all(count);
  if (count != 0) std::memcpy(all.data(), data, count * sizeof(T));
  return all;
}

}  // namespace penstock_test
