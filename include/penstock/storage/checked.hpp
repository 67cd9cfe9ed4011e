// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<openssl/evp.h>)
#error "penstock/storage/checked.hpp needs OpenSSL: link penstock::crypto"
#endif

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/crypto/checked_session.hpp>
#include <penstock/storage/detail/storage_around.hpp>
#include <penstock/storage/sha256_check.hpp>
#include <penstock/storage/sha256_list.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace penstock::inline v0_1 {

/// How `checked` compares objects.
struct checked_options {
  /// How many objects of a session are compared at the same time at most; each needs 4 MiB of memory, unless
  /// the storage inside shows its bytes in place.
  std::size_t max_checks_in_flight = 4;
};

/// Delivers bytes of an object only after all of it was compared with its SHA-256.
///
///     const auto shards = memory_files().add("a.tar", std::string(10'240, '\0'));
///     const checked safe(cached(shards, disk_cache("cache_folder", 64_MiB)), sha256_of(shards));
///     const std::uint64_t size = safe.connect().size(0);
///
/// In: any storage, and a list with an entry for each of its objects; see `sha256_list::find`.
/// The first read of an object in a session reads the whole object through the storage inside, in pieces of
/// 4 MiB; if the hash is that of the list, this and all later reads pass through. Threads that want the same
/// object meanwhile wait. Over `cached` the bytes that were compared are in the cache, so that each block is
/// fetched once; otherwise they are read again.
/// What is changed in place after that goes unnoticed until somebody asks for the version: if it is not
/// that of the object that was compared, the next read compares again.
/// Names do not count as paths, even if those inside do: an index beside a local file would decide what is
/// read without having been compared. Objects beside those of a store are compared with the list as well, and
/// one that it says nothing of counts as not there.
/// Errors: errc::io, with the object, if its bytes are not those of the list: no byte of it is delivered, and
/// the next read compares again. It may have been harmed on its way, so it does not count as recurring; but
/// what is in a cache stays as it is, so empty the cache before you try again. errc::io that recurs if the
/// list has no entry for the object, also from `size` and `version`. errc::stopped after `cancel`. Those of
/// the storage inside pass through; `max_checks_in_flight` of 0 is errc::argument.
/// Threads: any number of threads may use a session. It reads in the background if the session inside does;
/// up to 64 threads of the session make the reads of objects that were not compared yet.
/// Cost: each object is read once more in each session, and hashed by one thread. After that, a look at a
/// flag per read.
template <storage Far>
class checked : public detail::storage_around<checked<Far>, Far, true> {
 public:
  using session = detail::checked_session<Far>;

  checked(Far far, sha256_list list, checked_options options = {})
      : detail::storage_around<checked<Far>, Far, true>(std::move(far)),
        check_(std::move(list)),
        options_(options) {
    if (options.max_checks_in_flight == 0)
      throw error(errc::argument,
                  "checked needs to compare at least one object at a time: max_checks_in_flight is 0");
  }

  [[nodiscard]] session connect() const {
    return session(this->inner(), check_, options_.max_checks_in_flight);
  }
  [[nodiscard]] std::string describe() const {
    return this->describe_as("checked", detail::text({"SHA-256 of ", check_.list().size(), " objects"}));
  }

 private:
  sha256_check check_;
  checked_options options_;
};

}  // namespace penstock::inline v0_1
