// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/detail/exceptions.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/position.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// What kind of failure an `error` is. `format`, `checksum`, `missing`, `limit` and `shape` are functions of
/// the bytes: they happen again on every run. `io` and `stopped` are not.
enum class errc { format, checksum, missing, limit, shape, io, argument, state, stopped };

/// The name of a kind, as it is written here.
[[nodiscard]] constexpr std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::format:
      return "format";
    case errc::checksum:
      return "checksum";
    case errc::missing:
      return "missing";
    case errc::limit:
      return "limit";
    case errc::shape:
      return "shape";
    case errc::io:
      return "io";
    case errc::argument:
      return "argument";
    case errc::state:
      return "state";
    case errc::stopped:
      return "stopped";
  }
  return "unknown";
}

/// Whether a failure of this kind is a function of the bytes: what may be skipped or replaced. Others are
/// not, and a time-out must not decide the sequence.
[[nodiscard]] constexpr bool depends_on_bytes(errc code) noexcept {
  return code == errc::format || code == errc::checksum || code == errc::missing || code == errc::limit ||
         code == errc::shape;
}

namespace detail {

/// A text that is copied without an allocation: the standard's exceptions share theirs.
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

/// The exception of this library: one sentence, and the place it speaks of.
///
/// `what()` gives one line: the sentence, then the facts that are known in brackets. Each layer adds the
/// facts that it knows as the error passes through; a fact that is set already stays. Copying does not throw.
class error : public std::exception {
 public:
  error(errc code, std::string_view message) : error(code, {detail::piece(message)}) {}
  /// The message in pieces.
  [[gnu::cold, gnu::noinline]] error(errc code, std::initializer_list<detail::piece> message)
      : code_(code), message_(detail::text(message)) {
    render();
  }
  // Written out, so that places that throw call them: each is five texts.
  [[gnu::cold, gnu::noinline]] error(const error& other) noexcept
      : std::exception(other),
        code_(other.code_),
        message_(other.message_),
        stage_(other.stage_),
        file_(other.file_),
        key_(other.key_),
        line_(other.line_),
        offset_(other.offset_),
        at_(other.at_) {}
  error& operator=(const error& other) noexcept = default;
  [[gnu::cold, gnu::noinline]] ~error() override {}

  [[nodiscard]] const char* what() const noexcept override { return line_.c_str(); }
  [[nodiscard]] errc code() const noexcept { return code_; }
  [[nodiscard]] std::string_view message() const noexcept { return message_.view(); }
  [[nodiscard]] std::string_view stage() const noexcept { return stage_.view(); }
  [[nodiscard]] std::string_view file() const noexcept { return file_.view(); }
  [[nodiscard]] std::string_view key() const noexcept { return key_.view(); }
  [[nodiscard]] std::optional<std::uint64_t> offset() const noexcept { return offset_; }
  [[nodiscard]] std::optional<position> at() const noexcept { return at_; }

  error&& in_stage(std::string_view name) && { return std::move(set(stage_, name)); }
  error&& in_file(std::string_view name) && { return std::move(set(file_, name)); }
  error&& for_key(std::string_view name) && { return std::move(set(key_, name)); }
  error&& at_offset(std::uint64_t offset) && { return std::move(set(offset_, offset)); }
  error&& at_position(position where) && { return std::move(set(at_, where)); }
  error& in_stage(std::string_view name) & { return set(stage_, name); }
  error& in_file(std::string_view name) & { return set(file_, name); }
  error& for_key(std::string_view name) & { return set(key_, name); }
  error& at_offset(std::uint64_t offset) & { return set(offset_, offset); }
  error& at_position(position where) & { return set(at_, where); }

  /// Says in the sentence in which part of a whole it happened: "..., in source 2 of mix".
  [[gnu::cold, gnu::noinline]] error& in_part(std::string_view part) {
    message_ = detail::shared_text(detail::text({message(), ", in ", part}));
    render();
    return *this;
  }

  /// The offset so far was one within `part` of the file: it becomes words, and `offset` of the file the
  /// fact.
  [[gnu::cold, gnu::noinline]] error& within(std::string_view part, std::uint64_t offset) {
    if (offset_)
      message_ = detail::shared_text(detail::text({message(), ", at byte ", *offset_, " of ", part}));
    offset_ = offset;
    render();
    return *this;
  }

 private:
  [[gnu::cold, gnu::noinline]] error& set(detail::shared_text& fact, std::string_view value) {
    if (fact.empty()) {
      fact = detail::shared_text(std::string(value));
      render();
    }
    return *this;
  }
  template <class T>
  [[gnu::cold, gnu::noinline]] error& set(std::optional<T>& fact, T value) {
    if (!fact) {
      fact = value;
      render();
    }
    return *this;
  }

  [[gnu::cold, gnu::noinline]] void render() {
    std::string line = detail::text({"penstock: ", message_.view()});
    const std::size_t sentence = line.size();
    const auto add = [&](std::string_view name, std::initializer_list<detail::piece> value) {
      detail::append(line, {line.size() == sentence ? " [" : ", ", name});
      detail::append(line, value);
    };
    if (!stage_.empty()) add("stage ", {stage_.view()});
    if (!file_.empty()) add("file ", {file_.view()});
    if (!key_.empty()) add("key ", {key_.view()});
    if (offset_) add("offset ", {*offset_});
    if (at_) add("position ", {at_->epoch, ":", at_->index});
    if (line.size() != sentence) line += "]";
    for (char& c : line)  // names come from foreign bytes
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    line_ = detail::shared_text(line);
  }

  errc code_;
  detail::shared_text message_, stage_, file_, key_, line_;
  std::optional<std::uint64_t> offset_;
  std::optional<position> at_;
};

}  // namespace penstock::inline v0_1
