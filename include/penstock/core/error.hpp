// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>

#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// The kind of failure an `error` reports. `format`, `checksum`, `missing`, `limit` and `shape` depend only
/// on the bytes: they recur on every run. `io` and `stopped` do not. `exception` is one of another type, from
/// a function of yours or from another library: see `nested_error`.
enum class errc { format, checksum, missing, limit, shape, io, argument, state, stopped, exception };

/// The name of a kind, spelled as in the enum.
[[nodiscard]] constexpr std::string_view to_string(errc code) noexcept {
  return detail::enum_name(
      {"format", "checksum", "missing", "limit", "shape", "io", "argument", "state", "stopped", "exception"},
      code);
}

/// Whether a failure of this kind depends only on the bytes. Only such samples may be skipped or replaced: a
/// time-out must not change the sequence.
[[nodiscard]] constexpr bool depends_on_bytes(errc code) noexcept {
  return code == errc::format || code == errc::checksum || code == errc::missing || code == errc::limit ||
         code == errc::shape;
}

namespace detail {

/// A text that copies without allocating, as the standard's exceptions do.
class shared_text {
 public:
  shared_text() : text_("") {}
  explicit shared_text(const std::string& text) : text_(text) {}
  [[nodiscard]] const char* c_str() const noexcept { return text_.what(); }
  [[nodiscard]] std::string_view view() const noexcept { return text_.what(); }
  [[nodiscard]] bool empty() const noexcept { return *text_.what() == '\0'; }

 private:
  std::runtime_error text_;
};

}  // namespace detail

/// The exception type of this library: one sentence, and the place where it happened.
///
/// `what()` returns one line: the sentence, then the known facts in brackets. Each layer adds the facts that
/// it knows as the error passes through; a fact that is already set stays. Copying does not throw.
class error : public std::exception {
 public:
  error(errc code, std::string_view message) : error(code, {detail::piece(message)}) {}
  /// Builds the message from pieces.
  [[gnu::cold]] error(errc code, std::initializer_list<detail::piece> message);
  // Out of line, so that every throw site calls them: an error copies five texts.
  [[gnu::cold]] error(const error& other) noexcept;
  error& operator=(const error& other) noexcept = default;
  [[gnu::cold]] ~error() override;

  [[nodiscard]] const char* what() const noexcept override { return line_.c_str(); }
  [[nodiscard]] errc code() const noexcept { return code_; }
  [[nodiscard]] std::string_view message() const noexcept { return message_.view(); }
  [[nodiscard]] std::string_view stage() const noexcept { return stage_.view(); }
  [[nodiscard]] std::string_view file() const noexcept { return file_.view(); }
  [[nodiscard]] std::string_view key() const noexcept { return key_.view(); }
  [[nodiscard]] std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  [[nodiscard]] std::optional<position> at() const noexcept { return at_; }
  /// Whether the same failure would come again. Failures of input and output would not, unless they were
  /// marked: a missing object stays missing, a broken connection may be restored.
  [[nodiscard]] bool recurs() const noexcept { return recurs_; }
  /// Set if a store asked for fewer reads: the milliseconds that it asked to wait, 0 if it named none.
  [[nodiscard]] std::optional<std::uint64_t> retry_after_ms() const noexcept { return retry_after_ms_; }
  /// Whether nothing came in time.
  [[nodiscard]] bool timed_out() const noexcept { return timed_out_; }
  /// Whether no connection to the server could be made.
  [[nodiscard]] bool unreachable() const noexcept { return unreachable_; }

  error&& in_stage(std::string_view name) && { return std::move(set(stage_, name)); }
  error&& in_file(std::string_view name) && { return std::move(set(file_, name)); }
  error&& for_key(std::string_view name) && { return std::move(set(key_, name)); }
  error&& at_offset(std::uint64_t offset) && { return std::move(set(offset_, offset)); }
  error&& add_context(position where) && { return std::move(set(at_, where)); }
  error& in_stage(std::string_view name) & { return set(stage_, name); }
  error& in_file(std::string_view name) & { return set(file_, name); }
  error& for_key(std::string_view name) & { return set(key_, name); }
  error& at_offset(std::uint64_t offset) & { return set(offset_, offset); }
  error& add_context(position where) & { return set(at_, where); }

  /// Says that trying again would not help, or that it may.
  error&& recurring(bool yes = true) && {
    recurs_ = yes;
    return std::move(*this);
  }

  /// Says that a store asked for fewer reads, and how long it asked to wait.
  error&& asked_to_wait(std::uint64_t milliseconds) && {
    retry_after_ms_ = milliseconds;
    return std::move(*this);
  }
  /// Says that nothing came in time.
  error&& after_time_out() && {
    timed_out_ = true;
    return std::move(*this);
  }
  /// Says that no connection to the server could be made.
  error&& without_connection() && {
    unreachable_ = true;
    return std::move(*this);
  }

  /// Appends to the sentence: "..., after 5 attempts".
  [[gnu::cold]] error& say_more(std::string_view more);
  /// Adds to the sentence which part of a whole it happened in: "..., in source 2 of mix".
  [[gnu::cold]] error& in_part(std::string_view part);

  /// Gives the error texts that no copy shares, for another thread: the last owner of a text frees it.
  [[gnu::cold]] error& own_texts();

  /// Replaces an offset that was relative to `part` of the file: the old offset moves into the sentence, and
  /// `offset`, relative to the file, becomes the fact.
  [[gnu::cold]] error& within(std::string_view part, std::uint64_t offset);

 private:
  [[gnu::cold]] error& set(detail::shared_text& fact, std::string_view value);
  [[gnu::cold]] error& set(std::optional<std::uint64_t>& fact, std::uint64_t value);
  [[gnu::cold]] error& set(std::optional<position>& fact, position value);
  [[gnu::cold]] void render();

  errc code_;
  bool recurs_ = code_ != errc::io, timed_out_ = false, unreachable_ = false;
  detail::shared_text message_, stage_, file_, key_, line_;
  std::optional<std::uint64_t> offset_, retry_after_ms_;
  std::optional<position> at_;
};

/// An exception of another type that ended a sample, with the place of the sample: what a run throws if a
/// function of yours, or another library, threw something that is no `error`. Its sentence repeats what the
/// original says; its code is `errc::exception`, which `bad_samples` does not tolerate.
///
/// The original is inside, for the functions of the standard library and for `as`:
///
///     try {
///       for (auto&& b : batches.epoch(0)) use(b);
///     } catch (const nested_error& e) {
///       note(e.what());  // penstock: ... [stage map, file ..., key ..., position 0:17]
///       if (const auto* mine = e.as<std::out_of_range>()) repair(*mine);
///     }
class nested_error : public error, public std::nested_exception {
 public:
  /// In a handler: holds the exception that is being handled.
  [[gnu::cold]] nested_error();
  [[gnu::cold]] nested_error(const nested_error& other) noexcept;
  nested_error& operator=(const nested_error&) noexcept = default;
  [[gnu::cold]] ~nested_error() override;

  /// The original, if it is an `E` or derived from it; otherwise null. Valid as long as a copy of this error.
  template <class E>
  [[nodiscard]] const E* as() const {
    try {
      rethrow_nested();
    } catch (const E& found) {
      return &found;
    } catch (...) {
      return nullptr;
    }
  }
};

/// A `std::bad_alloc` that says how many bytes could not be had, what for, and what to do.
class out_of_memory : public std::bad_alloc {
 public:
  /// `what`: "the slots of a batch".
  [[gnu::cold]] out_of_memory(std::uint64_t bytes, std::string_view what, std::string_view advice);
  [[nodiscard]] const char* what() const noexcept override { return line_.c_str(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::uint64_t bytes_;
  detail::shared_text line_;
};

namespace detail {

/// In a handler of an exception from a function of a stage: rethrows it as an error that names the stage.
[[noreturn, gnu::cold]] void rethrow_in_stage(std::string_view stage);

/// `work()`, whose errors name the file.
template <class Work>
decltype(auto) in_file(std::string_view name, Work&& work) {
  try {
    return work();
  } catch (error& e) {
    e.in_file(name);
    throw;
  }
}

}  // namespace detail

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/core/error.ipp>
#endif
