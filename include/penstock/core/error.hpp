// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/position.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1 {

/// What kind of failure an `error` is. `format`, `checksum`, `missing`, `limit` and `shape` are functions of the
/// bytes: they happen again on every run. `io` and `stopped` are not.
enum class errc { format, checksum, missing, limit, shape, io, argument, state, stopped };

[[nodiscard]] constexpr std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::format: return "format";
    case errc::checksum: return "checksum";
    case errc::missing: return "missing";
    case errc::limit: return "limit";
    case errc::shape: return "shape";
    case errc::io: return "io";
    case errc::argument: return "argument";
    case errc::state: return "state";
    case errc::stopped: return "stopped";
  }
  return "unknown";
}

/// The exception of this library: one sentence, and the place it speaks of.
///
/// `what()` gives one line: the sentence, then the facts that are known in brackets. Each layer adds the facts that
/// it knows as the error passes through; a fact that is set already stays. Copies share the facts and do not throw.
class error : public std::exception {
 public:
  error(errc code, std::string message) : facts_(std::make_shared<facts>()) {
    facts_->code = code;
    facts_->message = std::move(message);
    render();
  }

  [[nodiscard]] const char* what() const noexcept override { return facts_->line.c_str(); }
  [[nodiscard]] errc code() const noexcept { return facts_->code; }
  [[nodiscard]] const std::string& message() const noexcept { return facts_->message; }
  [[nodiscard]] const std::string& stage() const noexcept { return facts_->stage; }
  [[nodiscard]] const std::string& file() const noexcept { return facts_->file; }
  [[nodiscard]] const std::string& key() const noexcept { return facts_->key; }
  [[nodiscard]] std::optional<std::uint64_t> offset() const noexcept { return facts_->offset; }
  [[nodiscard]] std::optional<position> at() const noexcept { return facts_->at; }

  error&& in_stage(std::string_view name) && { return std::move(set(facts_->stage, name)); }
  error&& in_file(std::string_view name) && { return std::move(set(facts_->file, name)); }
  error&& for_key(std::string_view name) && { return std::move(set(facts_->key, name)); }
  error&& at_offset(std::uint64_t offset) && { return std::move(set(facts_->offset, offset)); }
  error&& at_position(position where) && { return std::move(set(facts_->at, where)); }
  error& in_stage(std::string_view name) & { return set(facts_->stage, name); }
  error& in_file(std::string_view name) & { return set(facts_->file, name); }
  error& for_key(std::string_view name) & { return set(facts_->key, name); }
  error& at_offset(std::uint64_t offset) & { return set(facts_->offset, offset); }
  error& at_position(position where) & { return set(facts_->at, where); }

 private:
  struct facts {
    errc code{};
    std::string message, stage, file, key, line;
    std::optional<std::uint64_t> offset;
    std::optional<position> at;
  };

  error& set(std::string& fact, std::string_view value) {
    if (fact.empty()) {
      fact = value;
      render();
    }
    return *this;
  }
  template <class T>
  error& set(std::optional<T>& fact, T value) {
    if (!fact) {
      fact = value;
      render();
    }
    return *this;
  }

  void render() {
    std::string known;
    const auto add = [&known](std::string_view name, const std::string& value) {
      if (value.empty()) return;
      known += known.empty() ? " [" : ", ";
      known.append(name).append(" ").append(value);
    };
    add("stage", facts_->stage);
    add("file", facts_->file);
    add("key", facts_->key);
    if (facts_->offset) add("offset", std::to_string(*facts_->offset));
    if (facts_->at) add("position", std::to_string(facts_->at->epoch) + ":" + std::to_string(facts_->at->index));
    if (!known.empty()) known += "]";
    facts_->line = "penstock: " + facts_->message + known;
  }

  std::shared_ptr<facts> facts_;
};

}  // namespace penstock::inline v0_1
