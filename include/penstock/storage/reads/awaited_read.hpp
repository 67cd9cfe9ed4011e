// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/reads/awaited_read.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/storage/concepts.hpp>

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

namespace penstock::inline v0_1 {
namespace detail {

/// Waits for one read in the background.
class awaited_read {
 public:
  [[nodiscard]] read_listener listener() noexcept {
    return {this, [](void* self, std::uint64_t, std::exception_ptr failed) noexcept {
              auto& read = *static_cast<awaited_read*>(self);
              const std::scoped_lock held(read.lock_);
              read.failed_ = std::move(failed);
              read.ended_ = true;
              read.changed_.notify_one();  // under the lock: `wait` destroys what is notified
            }};
  }
  void wait() {
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return ended_; });
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr failed_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
