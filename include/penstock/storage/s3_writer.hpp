// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<boost/beast/http/parser.hpp>) || !__has_include(<pugixml.hpp>)
#error "penstock/storage/s3_writer.hpp needs Boost.Beast, OpenSSL and pugixml: link penstock::s3"
#endif

#include <penstock/core/fingerprint.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/s3/requests/upload.hpp>
#include <penstock/storage/storage_counters.hpp>

namespace penstock::inline v0_1 {

/// Options of `s3_writer`: how objects are cut into parts.
struct s3_writer_options {
  /// The size of a part, from 5 MiB on, which is the least that S3 takes. Parts grow after each 1000, so that
  /// objects may have 5 TiB; stores that want parts of one size, as Cloudflare's, take 1000 times this.
  std::size_t part_size = std::size_t{8} << 20;
  /// How many parts are on their way at once. So many parts, and the one that is being filled, are in memory:
  /// 40 MiB at first, 80 MiB from the 1001st part on.
  std::size_t max_in_flight = 4;
  /// How often a request is sent before its failure is the error, if trying again may help.
  unsigned attempts = 8;
  /// The wait before the second attempt is a random part of this; it doubles for each further one, up to 20
  /// s.
  std::chrono::milliseconds initial_backoff{250};
};

/// Writes objects into S3, one after another, in parts that are sent while you write.
///
///     s3_writer out({.place = {.region = "eu-central-1"}}, {.max_in_flight = 8});
///
/// `open("bucket/key")`, `write(bytes)` as often as you like, and `finish()`; then the next `open`. The
/// object appears at `finish`, whole, in the place of one that was there before. `abort` gives an unfinished
/// object up; so does an error, the next `open`, and the destructor, and the store then forgets its parts.
/// Only a program that is killed, or stopped by `http_options::stop`, leaves parts there: let the bucket have
/// a lifecycle rule that aborts incomplete uploads.
/// In: names as for `s3`; objects of any size. What fits into one part is put by one request, everything else
/// by a multipart upload.
/// Each part is sent again if that may help, up to `attempts` times, with growing pauses, and no sooner than
/// the store asks, up to `connection.retries.max_retry_after`, and within `connection.retries.max_time`. The
/// store compares what arrives: by the signed SHA-256 over http, by Content-MD5 over https.
/// Errors and secrets: as for `s3`, with the object's name, after the upload was aborted; errc::limit beyond
/// 10,000 parts; errc::state for `write` and `finish` without `open`.
/// Threads: one at a time.
/// Cost: one copy of the bytes, and a hash; `write` waits while `max_in_flight` parts are on their way.
/// Source: Amazon S3 User Guide, "Uploading and copying objects using multipart upload".
class s3_writer {
 public:
  /// Throws what `s3::connect` throws, and errc::argument for sizes that make no sense. Sends nothing.
  explicit s3_writer(s3_options options = {}, s3_writer_options how = {})
      : how_(checked(how, options)), store_(std::make_unique<detail::s3::store>(options)) {}
  s3_writer(s3_writer&&) noexcept = default;
  s3_writer& operator=(s3_writer&& other) noexcept {
    upload_.reset();  // before its store
    store_ = std::move(other.store_);
    upload_ = std::move(other.upload_);
    how_ = other.how_;
    retries_ = other.retries_;
    return *this;
  }
  ~s3_writer() = default;

  /// Begins an object; one that is unfinished is given up. Sends nothing.
  void open(std::string_view name) {
    abort();
    const detail::s3::object_name found = detail::s3::parse_object_name(name);
    detail::s3::check_bucket(found.bucket, false);
    upload_ = std::make_unique<detail::s3::upload>(*store_, how_,
                                                   detail::text({"s3://", found.bucket, "/", found.key}));
  }
  /// Appends bytes.
  void write(bytes_view bytes) {
    guarded([&] { opened().write(bytes); });
  }
  /// Makes the object appear. Returns its size and stamp, as `s3::session::version` gives them.
  object_version finish() {
    object_version made;
    guarded([&] {
      const std::string tag = detail::s3::tag_of(opened().finish());
      made = {upload_->size(), tag.empty() ? 0 : fingerprint().add(tag).value()};
    });
    abort();
    return made;
  }
  /// Gives an unfinished object up; waits until the store has forgotten it, or cannot be reached.
  void abort() noexcept {
    if (upload_ == nullptr) return;
    upload_->abort();
    retries_ += upload_->retries();
    upload_.reset();
  }

  /// Requests sent, attempts after the first, and answers that asked for fewer requests.
  [[nodiscard]] storage_counters counters() const noexcept {
    storage_counters all = store_->counters();
    all.retries = retries_ + (upload_ == nullptr ? 0 : upload_->retries());
    return all;
  }

 private:
  [[nodiscard]] detail::s3::upload& opened() const {
    if (upload_ == nullptr)
      throw error(
          errc::state,
          "no object is open in this s3_writer: call open(\"bucket/key\") first, also after an error");
    return *upload_;
  }
  /// An object that fails is given up.
  template <class Step>
  void guarded(Step step) {
    try {
      step();
    } catch (...) {
      abort();
      throw;
    }
  }
  [[nodiscard]] static detail::s3::upload_plan checked(const s3_writer_options& how,
                                                       const s3_options& options) {
    detail::check(options.connection);
    constexpr std::size_t least = std::size_t{5} << 20, largest = std::size_t{5} << 30;
    if (how.part_size < least || how.part_size > largest)
      throw error(errc::argument,
                  {"a part has from 5 MiB (", least, " bytes) to 5 GiB, not ", how.part_size});
    if (how.max_in_flight == 0 || how.max_in_flight > 1000)
      throw error(errc::argument, {"from 1 to 1000 parts are on their way at once, not ", how.max_in_flight});
    if (how.attempts == 0)
      throw error(errc::argument, "a request is sent at least once: attempts is 1 or more");
    if (how.initial_backoff.count() < 0 || how.initial_backoff > std::chrono::hours(1))
      throw error(errc::argument,
                  {"initial_backoff is from 0 ms to an hour, not ", how.initial_backoff.count(), " ms"});
    detail::retry_policy retries = detail::policy_of(options.connection);
    retries.attempts = how.attempts;
    retries.initial_backoff = how.initial_backoff;
    retries.max_backoff = std::chrono::seconds(20);
    retries.budget = 0;
    return {how.part_size, how.max_in_flight, retries};
  }

  detail::s3::upload_plan how_;
  std::uint64_t retries_ = 0;
  std::unique_ptr<detail::s3::store> store_;
  std::unique_ptr<detail::s3::upload> upload_;
};

static_assert(object_writer<s3_writer>, "s3_writer is a writer of objects");

}  // namespace penstock::inline v0_1
