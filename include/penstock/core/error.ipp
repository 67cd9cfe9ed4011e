// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>

namespace penstock::inline v0_1 {

[[gnu::noinline]] PENSTOCK_INLINE error::error(errc code, std::initializer_list<detail::piece> message)
    : code_(code), message_(detail::text(message)) {
  render();
}

[[gnu::noinline]] PENSTOCK_INLINE error::error(const error& other) noexcept
    : std::exception(other),
      code_(other.code_),
      recurs_(other.recurs_),
      timed_out_(other.timed_out_),
      unreachable_(other.unreachable_),
      message_(other.message_),
      stage_(other.stage_),
      file_(other.file_),
      key_(other.key_),
      line_(other.line_),
      offset_(other.offset_),
      retry_after_ms_(other.retry_after_ms_),
      at_(other.at_) {}

[[gnu::noinline]] PENSTOCK_INLINE error::~error() {}

[[gnu::noinline]] PENSTOCK_INLINE error& error::say_more(std::string_view more) {
  message_ = detail::shared_text(detail::text({message(), ", ", more}));
  render();
  return *this;
}

[[gnu::noinline]] PENSTOCK_INLINE error& error::in_part(std::string_view part) {
  return say_more(detail::text({"in ", part}));
}

[[gnu::noinline]] PENSTOCK_INLINE error& error::own_texts() {
  for (detail::shared_text* const one : {&message_, &stage_, &file_, &key_, &line_})
    *one = detail::shared_text(std::string(one->view()));
  return *this;
}

PENSTOCK_INLINE error& error::within(std::string_view part, std::uint64_t offset) {
  if (offset_)
    message_ = detail::shared_text(detail::text({message(), ", at byte ", *offset_, " of ", part}));
  offset_ = offset;
  render();
  return *this;
}

[[gnu::noinline]] PENSTOCK_INLINE error& error::set(detail::shared_text& fact, std::string_view value) {
  if (fact.empty()) {
    fact = detail::shared_text(std::string(value));
    render();
  }
  return *this;
}

[[gnu::noinline]] PENSTOCK_INLINE error& error::set(std::optional<std::uint64_t>& fact, std::uint64_t value) {
  if (!fact) {
    fact = value;
    render();
  }
  return *this;
}

[[gnu::noinline]] PENSTOCK_INLINE error& error::set(std::optional<position>& fact, position value) {
  if (!fact) {
    fact = value;
    render();
  }
  return *this;
}

namespace detail {

[[nodiscard, gnu::cold]] PENSTOCK_INLINE std::string handled_text() {
  try {
    throw;
  } catch (const std::exception& e) {
    constexpr std::string_view ours = "penstock: ";
    std::string_view said = e.what();
    if (said.substr(0, ours.size()) == ours) said.remove_prefix(ours.size());
    return std::string(said);
  } catch (...) {
    return "an object that is no std::exception";
  }
}

[[gnu::noinline]] PENSTOCK_INLINE void rethrow_in_stage(std::string_view stage) {
  try {
    throw;
  } catch (error& e) {
    if (e.stage().empty()) e.in_stage(stage);
    throw;
  } catch (...) {
    nested_error made;
    made.in_stage(stage);
    throw made;
  }
}

}  // namespace detail

[[gnu::noinline]] PENSTOCK_INLINE nested_error::nested_error()
    : error(errc::exception, {"this sample ended with an exception: ", detail::handled_text()}) {}
[[gnu::noinline]] PENSTOCK_INLINE nested_error::nested_error(const nested_error& other) noexcept
    : error(other), std::nested_exception(other) {}
[[gnu::noinline]] PENSTOCK_INLINE nested_error::~nested_error() {}

[[gnu::noinline]] PENSTOCK_INLINE out_of_memory::out_of_memory(std::uint64_t bytes, std::string_view what,
                                                               std::string_view advice)
    : bytes_(bytes),
      line_(detail::text({"penstock: there is no memory for ", bytes, " bytes of ", what, "; ", advice})) {}

[[gnu::noinline]] PENSTOCK_INLINE void error::render() {
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
  for (char& c : line)  // names come from untrusted bytes
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  line_ = detail::shared_text(line);
}

}  // namespace penstock::inline v0_1
