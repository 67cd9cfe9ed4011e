// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/compiled.hpp>
#include <penstock/storage/cache/staged_object.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/mapped_file.hpp>
#include <penstock/storage/object_check.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace penstock::inline v0_1 {

/// How `stage_to` reads, and how to end it.
struct stage_options {
  std::size_t max_in_flight = 8;  ///< requests in flight
  std::size_t part_size = 8_MiB;  ///< bytes of a request
  std::stop_token stop = {};      ///< ends the call with errc::stopped
};

/// How far a call of `stage_to` is.
struct stage_progress {
  std::size_t objects_done = 0;  ///< complete, whoever fetched them
  std::size_t objects = 0;
  std::uint64_t bytes_done = 0;  ///< of those, and of what this call is at
  std::uint64_t bytes = 0;       ///< of all objects that were asked for their size so far
  std::uint64_t fetched = 0;     ///< that this call read from the storage
};

namespace detail::staging {

/// Who is told how far it is: called by the thread that called `stage_to`.
struct stage_listener {
  void* self = nullptr;
  void (*call)(void* self, const stage_progress& now) = nullptr;
};

/// Copies all objects to a folder; returns their paths.
[[nodiscard]] std::vector<std::string> stage(const far_storage& far, const std::string& folder,
                                             const stage_options& options, const check_view& check,
                                             stage_listener listener);

}  // namespace detail::staging

/// Copies the objects of a storage to a local folder, once for all processes of a node, and returns the
/// storage of the copies, in the same order.
///
///     const auto shards = memory_files().add("bucket/a.tar", std::string(10'240, '\0'));
///     const file local = stage_to(simulated_storage(shards, {}), "staged_shards", {.max_in_flight = 16});
///     const file same = stage_to(simulated_storage(shards, {}), "staged_shards", {},
///                                [](const stage_progress& now) { return now.bytes_done; });
///
/// In: any storage, a folder, which is made if it is not there, and after the options perhaps a
/// function that is told how far it is, and an `object_check`. An object's file has the part of its name that
/// follows the folder which all names have in common; of a URL neither scheme nor query is part of it.
/// A file appears under its name when all of its bytes are on the disk, with a record of its object's name,
/// size and stamp in the folder `.penstock-staged`. A later call fetches what is not there, what has another
/// size or stamp by now, and what was changed in the folder. An object without a stamp is the same as long as
/// it has the same size, and is begun anew if it is half there, unless a check would find a mixture out.
/// Any number of processes may call it at once: each object is fetched by one of them, and all return when
/// all are there. Killed at any moment, by `stage_options::stop` or by an error, it leaves what it has, and
/// the next call goes on behind the last part that was written; if the machine was started anew since, at the
/// beginning of that object.
/// The watcher is called by the calling thread, four times a second and at the end; if it throws, the call
/// ends. The check sees an object's bytes in order, those that an earlier call has written too; an object
/// that it refuses is fetched once more. Copies that are complete are not checked again.
/// Nothing is deleted that it did not write. Files have the permissions 0600, folders 0700.
/// Errors: those of the storage, with the object's name, and those of the check; errc::argument for names
/// with `..`, two that would be one file, a file in the way that was not staged or was staged from another
/// object, a folder that is another user's or may be written to by others, and a file system without locks
/// that belong to open files; errc::io for a disk that has too little room, before anything is fetched, for
/// one that fails, and for an object that is replaced while it is read; errc::stopped.
/// Cost: a request for each object's size and stamp, and one for each part; a copy to the file; a flush of
/// each file. Of `file` and `mapped_file` the system copies, without a check.
/// Keeps: memory for `max_in_flight` parts, as many threads, twice as many if the storage has no reads in the
/// background, and a record of a few hundred bytes per object.
/// Threads: any number may call it. A child after `fork` has no part in a call that is going on.
template <storage Far, class... More>
  requires((object_check<More> || std::invocable<More&, const stage_progress&>) && ...)
[[nodiscard]] file stage_to(const Far& far, const std::string& folder, const stage_options& options = {},
                            More... more) {
  static_assert((0 + ... + int{object_check<More>}) <= 1 && (0 + ... + int{!object_check<More>}) <= 1,
                "penstock: stage_to takes one object_check and one function that is told how far it is");
  detail::check_view check;
  detail::staging::stage_listener listener;
  [[maybe_unused]] const auto use = [&]<class T>(T& one) {
    if constexpr (object_check<T>)
      check = detail::check_view(one);
    else
      listener = {&one, [](void* self, const stage_progress& now) { (*static_cast<T*>(self))(now); }};
  };
  (use(more), ...);
  constexpr bool are_files = std::same_as<Far, file> || std::same_as<Far, mapped_file>;
  auto session = far.connect();
  return file(detail::staging::stage({session, far.names(), is_local(far), are_files}, folder, options, check,
                                     listener));
}

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/stage_to.ipp>
#endif
