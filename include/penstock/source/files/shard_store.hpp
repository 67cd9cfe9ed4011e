// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/bytes.hpp>
#include <penstock/storage/concepts.hpp>

#include <concepts>
#include <memory>
#include <string_view>
#include <utility>

namespace penstock::inline v0_1::detail {

/// Any `object_writer`; without one, shards are files.
class shard_store {
 public:
  shard_store() = default;
  template <class Writer>
    requires(!std::same_as<Writer, shard_store>) && object_writer<Writer>
  explicit shard_store(Writer writer)
      : writer_(std::make_shared<Writer>(std::move(writer))),
        open_([](void* self, std::string_view name) { static_cast<Writer*>(self)->open(name); }),
        write_([](void* self, bytes_view bytes) { static_cast<Writer*>(self)->write(bytes); }),
        finish_([](void* self) { return static_cast<Writer*>(self)->finish(); }) {}

  [[nodiscard]] explicit operator bool() const noexcept { return writer_ != nullptr; }
  void open(std::string_view name) const { open_(writer_.get(), name); }
  void write(bytes_view bytes) const { write_(writer_.get(), bytes); }
  [[nodiscard]] object_version finish() const { return finish_(writer_.get()); }

 private:
  std::shared_ptr<void> writer_;
  void (*open_)(void* self, std::string_view name) = nullptr;
  void (*write_)(void* self, bytes_view bytes) = nullptr;
  object_version (*finish_)(void* self) = nullptr;
};

}  // namespace penstock::inline v0_1::detail
