// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/crypto.h>)
#error "penstock/storage/s3/credential_cache.hpp needs OpenSSL: link penstock::s3"
#endif

#include <penstock/core/error.hpp>
#include <penstock/storage/s3/credentials.hpp>
#include <penstock/storage/s3/requests/http_call.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>

namespace penstock::inline v0_1::detail::s3 {

/// The same error with texts of its own, for another thread.
[[nodiscard, gnu::cold]] inline error own_copy(const error& failure) {
  error made(failure);
  return made.own_texts();
}

/// What the time is; tests have one of their own.
struct wall_clock {
  void* self = nullptr;
  wall_time (*now)(void* self) = [](void*) {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  [[nodiscard]] wall_time operator()() const { return now(self); }
};

/// Keeps credentials and renews them: before they expire, and when a server says that they have. One thread
/// renews; as long as the old ones are valid, others take those and do not wait.
///
/// `Source` has `find(now)`, as `credential_chain`. Threads: any number.
template <class Source>
class credential_cache {
 public:
  /// `seed` spreads renewals, so that a thousand processes do not all ask in the same second.
  explicit credential_cache(Source source, wall_clock clock = {}, std::uint64_t seed = 0)
      : source_(std::move(source)),
        clock_(clock),
        spread_(static_cast<std::int64_t>(seed * 0x9E3779B97F4A7C15u >> 58)) {}

  /// Credentials that are valid, as far as this machine's clock and the last answer of a server say. Throws
  /// what `Source` throws if there are none and no old ones that are still valid; so do all that waited.
  [[nodiscard]] std::shared_ptr<const s3_credentials> current() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const wall_time now = clock_();
      if (valid(now) && now < renew_at_) return kept_;
      if (!renewing_) return renewed(lock, now);
      if (valid(now)) return kept_;
      const std::uint64_t round = rounds_;
      renewed_.wait(lock, [&] { return rounds_ != round; });
      if (failure_) throw own_copy(*failure_);
    }
  }

  /// What `current` would give without waiting; null if credentials must be found or renewed first.
  [[nodiscard]] std::shared_ptr<const s3_credentials> ready() {
    const std::lock_guard lock(mutex_);
    const wall_time now = clock_();
    return valid(now) && (now < renew_at_ || renewing_) ? kept_ : nullptr;
  }

  /// A server said that these, which `current` gave, have expired: they are not given again.
  void expired(const std::shared_ptr<const s3_credentials>& those) {
    const std::lock_guard lock(mutex_);
    if (those == kept_) refused_ = true;
  }

 private:
  static constexpr std::chrono::seconds margin{300}, pause{30};

  [[nodiscard]] bool valid(wall_time now) const {
    return kept_ != nullptr && !refused_ && (!kept_->expires() || now < *kept_->expires());
  }

  [[nodiscard]] std::shared_ptr<const s3_credentials> renewed(std::unique_lock<std::mutex>& lock,
                                                              wall_time now) {
    renewing_ = true;
    lock.unlock();
    std::shared_ptr<const s3_credentials> found;
    std::optional<error> failure;
    try {
      found = std::make_shared<const s3_credentials>(source_.find(now));
    } catch (const error& e) {
      failure = own_copy(e);
    } catch (...) {
      lock.lock();
      end_round(std::nullopt);
      throw;
    }
    lock.lock();
    now = clock_();
    if (found && found->expires() && *found->expires() <= now) {
      failure.emplace(errc::io, "the credentials that were found expired before: check this machine's clock");
    } else if (found && refused_ && *found == *kept_) {
      failure.emplace(error(errc::io,
                            "the store says that the credentials have expired, and there are no newer ones "
                            "where they came from: renew them")
                          .recurring());
    } else if (found) {
      kept_ = std::move(found);
      refused_ = false;
      renew_at_ = wall_time::max();
      if (kept_->expires()) renew_at_ = *kept_->expires() - before(*kept_->expires() - now);
    }
    if (failure && valid(now)) {  // the old ones will do; soon again
      renew_at_ = now + pause;
      failure.reset();
    }
    end_round(failure);
    if (failure_) throw own_copy(*failure_);
    return kept_;
  }
  /// How long before their end credentials of this lifetime are renewed.
  [[nodiscard]] std::chrono::seconds before(std::chrono::seconds lifetime) const {
    return std::min(margin + std::chrono::seconds(spread_), lifetime / 4);
  }
  void end_round(const std::optional<error>& failure) {
    failure_ = failure;
    renewing_ = false;
    ++rounds_;
    renewed_.notify_all();
  }

  Source source_;
  wall_clock clock_;
  std::int64_t spread_;  // seconds, 0 to 63

  std::mutex mutex_;
  std::condition_variable renewed_;
  std::shared_ptr<const s3_credentials> kept_;
  std::optional<error> failure_;  // of the last round
  wall_time renew_at_{};
  std::uint64_t rounds_ = 0;
  bool refused_ = false, renewing_ = false;
};

}  // namespace penstock::inline v0_1::detail::s3
