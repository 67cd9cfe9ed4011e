// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail::web {

/// Reads ranges of objects, each with a `Call`. `Objects`, which derives from it, says what objects and calls
/// are:
///
///   known(id)                null, or what is known of an object: its size, and the tag for If-Match
///   address(call, id)        says which object a call is about; throws if there is none
///   add_headers(reading)     if it has any: what the request says besides
///   perform(reading)         waits for the answer
///   begin(calls)             does not wait; calls that cannot begin end with the failure
///   on_end(call, self, f)    f(self, call, failed) is called at its end
///   finish(reading)          throws unless the answer was the range
template <class Objects, class Call>
class object_reads {
 public:
  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    reading one;
    if (!prepare(one, {id, offset, into})) return;
    objects().perform(one);
    objects().finish(one);
  }
  void read_many(std::span<const read_request> requests, read_listener listener) noexcept {
    std::vector<Call*> begun;
    for (const read_request& request : requests) {
      std::exception_ptr failed;
      try {
        begun.reserve(requests.size());
        auto one = std::make_unique<reading>();
        if (prepare(*one, request)) {
          one->listener = listener;
          one->from = &objects();
          one->tag = request.tag;
          Objects::on_end(*one, one.get(), read_ended);
          begun.push_back(one.release());
          continue;
        }
      } catch (...) {
        failed = std::current_exception();
      }
      listener.done(listener.self, request.tag, std::move(failed));
    }
    if (!begun.empty()) objects().begin(begun);
  }

 protected:
  struct reading : Call {
    read_request request;
    read_listener listener;
    Objects* from = nullptr;
    std::byte one_byte{};
  };

  void add_headers(reading&) const {}
  [[nodiscard]] static error beyond_end(const reading& one, std::optional<std::uint64_t> size) {
    std::string line =
        text({"the range of ", one.request.into.size(), " bytes goes beyond the end of the object"});
    if (size) append(line, {", which has ", *size});
    return error(errc::format, line).in_file(one.name).at_offset(one.request.offset);
  }

 private:
  [[nodiscard]] Objects& objects() noexcept { return static_cast<Objects&>(*this); }

  /// Makes the request for a range; false if there is nothing to read. Throws for a range that is beyond the
  /// end of an object whose size is known.
  bool prepare(reading& one, const read_request& request) {
    one.request = request;
    objects().address(one, request.object);
    const std::uint64_t size = request.into.size();
    const auto* const there = objects().known(request.object);
    const bool overflows = size > std::numeric_limits<std::uint64_t>::max() - request.offset;
    if (overflows || (there != nullptr && request.offset + size > there->size))
      throw beyond_end(one, there != nullptr ? std::optional(there->size) : std::nullopt);
    if (size == 0 && (request.offset == 0 || there != nullptr)) return false;
    // That an empty range is inside the object shows by the byte before it.
    one.offset = size == 0 ? request.offset - 1 : request.offset;
    one.into = size == 0 ? mutable_bytes(&one.one_byte, 1) : request.into;
    if (there != nullptr) {
      one.if_match = there->if_match;
      one.size = there->size;
    }
    objects().add_headers(one);
    return true;
  }
  static void read_ended(void* self, Call&, std::exception_ptr failed) noexcept {
    const std::unique_ptr<reading> one(static_cast<reading*>(self));
    if (!failed) {
      try {
        one->from->finish(*one);
      } catch (...) {
        failed = std::current_exception();
      }
    }
    one->listener.done(one->listener.self, one->request.tag, std::move(failed));
  }
};

}  // namespace penstock::inline v0_1::detail::web
