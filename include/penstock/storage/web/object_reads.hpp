// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/owned.hpp>
#include <penstock/base/shared.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/reads/single_flight.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/web/web_call.hpp>

#include <atomic>
#include <exception>
#include <limits>
#include <optional>
#include <vector>

namespace penstock::inline v0_1::detail::web {

/// A session that reads ranges of objects, each with a `Call` through a `Line`. `Objects`, which derives from
/// it, says what objects and calls are, and ends the line before what it uses:
///
///   version(id)              asks for it once
///   find_by_head(id)         asks for what is known of an object
///   known(id)                null, or what is known of an object: its size, and the tag for If-Match
///   address(call, id)        says which object a call is about
///   add_headers(reading)     if it has any: what the request says besides
///   begin(calls)             does not wait; calls that cannot begin end with the failure
///   on_end(call, self, f)    f(self, call, failed) is called at its end
///   pin(call, id, size)      notes what an answer tells of an object; throws if that contradicts what is known
///   arrived(reading, total)  if it has any: the range has come
///   failure_of(call)         the error of an answer that is not the range
///   ends_have_no_size        whether 416 says that a range is beyond the end although it has no size
template <class Objects, class List, class Line, class Call>
class object_reads : unmovable {
 public:
  using list = List;
  static constexpr session_traits traits = {.latency = true};

  [[nodiscard]] std::uint64_t size(object_id id) { return objects().version(id).size; }

  void read(object_id id, std::uint64_t offset, mutable_bytes into) {
    reading one;
    if (!prepare(one, {id, offset, into})) return;
    line_->perform(one);
    finish(one);
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

  /// Ends all requests in flight, those of `read` and those for credentials included.
  void cancel() noexcept {
    flight_.cancel();
    line_->cancel();
  }
  /// Ends those of `read_many` with that tag.
  void abandon(std::uint64_t tag) noexcept { line_->abandon(tag); }
  /// As `cancel`, and lets reads that begin later end at once with errc::stopped.
  void end_reads() noexcept {
    flight_.cancel();
    line_->refuse();
  }

  /// Requests sent, those answered by an error or a redirect included; bytes of objects; answers that asked
  /// for fewer requests. Of at most as many requests in flight as there may be connections.
  [[nodiscard]] session_report report() const noexcept {
    session_report made{.counters = line_->counters(),
                        .requests = line_->ended_requests(),
                        .counted = true,
                        .max_in_flight = max_in_flight_};
    made.counters.bytes = bytes_.load(std::memory_order_relaxed);
    return made;
  }
  /// Connections opened so far.
  [[nodiscard]] std::uint64_t connections() const noexcept { return line_->connections(); }

 protected:
  object_reads(shared<const List> all, std::size_t connections)
      : list_(std::move(all)), max_in_flight_(connections) {}

  struct reading : Call {
    read_request request;
    read_listener listener;
    Objects* from = nullptr;
    std::byte one_byte{};
  };

  void add_headers(reading&) const {}
  void arrived(const reading&, std::optional<std::uint64_t>) const {}

  /// The facts of an object, which the first call asks the server for.
  const auto& find(object_id id) {
    check(id);
    if (objects().known(id) == nullptr)
      flight_.ask(id, [&] {
        if (objects().known(id) == nullptr) objects().find_by_head(id);
      });
    return *objects().known(id);
  }
  void check(object_id id) const {
    if (id >= list_->names.size()) throw error(errc::argument, {"there is no object ", id});
  }

  shared<const List> list_;
  single_flight flight_;
  std::optional<Line> line_;

 private:
  [[nodiscard]] static error beyond_end(const reading& one, std::optional<std::uint64_t> size) {
    std::string line =
        text({"the range of ", one.request.into.size(), " bytes goes beyond the end of the object"});
    if (size) append(line, {", which has ", *size});
    return error(errc::format, line).in_file(one.name).at_offset(one.request.offset);
  }
  /// Throws unless the answer was the range.
  void finish(reading& one) {
    const object_id id = one.request.object;
    const unsigned status = one.reply.status;
    const auto* const there = objects().known(id);
    if (status == 200 || status == 206) {
      const auto total = total_length(one.reply);
      if (!total && there == nullptr)
        throw one.with_facts(error(errc::io, "the server does not tell how long the object is")).recurring();
      objects().pin(one, id, total ? *total : there->size);
      objects().arrived(one, total);
      bytes_.fetch_add(one.request.into.size(), std::memory_order_relaxed);
      return;
    }
    if (status == 416) {
      const auto range = parse_content_range(one.reply.header("Content-Range"));
      const auto total = range ? range->total : std::nullopt;
      if (total && there != nullptr) objects().pin(one, id, *total);
      if (total ? one.offset + one.into.size() > *total : Objects::ends_have_no_size)
        throw beyond_end(one, total);
    }
    throw objects().failure_of(one);
  }
  [[nodiscard]] Objects& objects() noexcept { return static_cast<Objects&>(*this); }

  /// Makes the request for a range; false if there is nothing to read. Throws for a range that is beyond the
  /// end of an object whose size is known.
  bool prepare(reading& one, const read_request& request) {
    one.request = request;
    check(request.object);
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
    if (!failed) failed = thrown_by([&] { one->from->finish(*one); });
    one->listener.done(one->listener.self, one->request.tag, std::move(failed));
  }

  std::size_t max_in_flight_;
  std::atomic<std::uint64_t> bytes_{0};
};

/// What `http` and `s3` read through: one request per read, and a second one only if an answer asks for it.
/// Failures are not retried. `Objects` are those of a session, made of a list and options.
template <class Objects, class Options>
class plain_objects {
  using list = typename Objects::list;

 public:
  class session : public session_adaptor<session, Objects> {
   public:
    [[nodiscard]] Objects& inside() const noexcept { return *objects_; }
    [[nodiscard]] std::uint64_t connections() const noexcept { return objects_->connections(); }

   private:
    friend plain_objects;
    explicit session(std::unique_ptr<Objects> made) : objects_(std::move(made)) {}

    std::unique_ptr<Objects> objects_;
  };

  plain_objects(shared<const list> all, Options options)
      : list_(std::move(all)), options_(std::move(options)) {}

  [[nodiscard]] std::span<const std::string> names() const noexcept { return list_->names; }
  [[nodiscard]] session connect() const { return session(std::make_unique<Objects>(list_, options_)); }

 private:
  shared<const list> list_;
  Options options_;
};

}  // namespace penstock::inline v0_1::detail::web
