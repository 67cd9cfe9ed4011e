// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// What `copy` writes to. copy_to_folder.hpp and copy_to_s3.hpp have the two that there are; for another
// place, write another class with these members.

#include "copy_parts.hpp"

#include <penstock/core/bytes.hpp>
#include <penstock/core/fingerprint.hpp>

#include <cstdint>
#include <optional>

/// Writes one object at a time, part by part and in order; each thread has one.
class sink {
 public:
  virtual ~sink() = default;
  /// Begins an object. Returns how many of its parts are there already, from a run that was killed; nothing
  /// if it is there as a whole.
  virtual std::optional<std::uint64_t> open(const copied_object& what) = 0;
  /// The next part.
  virtual void write(penstock::bytes_view part) = 0;
  /// Only now is it there under its name. Throws if what was written is not what can be read back.
  virtual void finish() = 0;
  /// Ends an object that cannot be finished.
  virtual void abort() noexcept = 0;
};

/// What parts are compared by.
[[nodiscard]] inline std::uint64_t hash_of(penstock::bytes_view part) {
  return penstock::fingerprint().add(penstock::text_of(part)).value();
}
