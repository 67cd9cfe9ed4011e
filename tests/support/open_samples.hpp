// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/open_sample.hpp>
#include <penstock/core/part.hpp>
#include <penstock/core/position.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace penstock_test {

/// A source of open samples made of texts; counts how many members were read.
class open_samples {
 public:
  using member = std::pair<std::string, std::string>;
  struct sample {
    std::string key;
    std::vector<member> members;
  };

  struct text_blob {
    using unfinished = void;
    const std::string* text = nullptr;
    std::size_t* reads = nullptr;
    [[nodiscard]] std::uint64_t size() const { return text->size(); }
    void read_into(penstock::mutable_bytes into) const {
      ++*reads;
      if (!into.empty()) std::memcpy(into.data(), text->data(), into.size());
    }
    [[nodiscard]] penstock::bytes_view finish() const {
      ++*reads;
      return penstock::bytes_of(*text);
    }
  };
  struct view {
    using is_open_sample = void;
    using blob_type = text_blob;
    const sample* of = nullptr;
    std::size_t* reads = nullptr;
    [[nodiscard]] std::string_view key() const { return of->key; }
    [[nodiscard]] std::size_t size() const { return of->members.size(); }
    [[nodiscard]] std::string_view name(std::size_t i) const { return of->members[i].first; }
    [[nodiscard]] text_blob member(std::size_t i) const { return {&of->members[i].second, reads}; }
  };

  using penstock_part = penstock::source_tag;
  using element = view;
  static constexpr std::string_view source_name = "open_samples";

  class reader {
   public:
    struct worker {};
    explicit reader(const open_samples& of) : all_(of.all_), reads_(of.reads_) {}
    template <class Sink>
    void evaluate(penstock::position p, worker&, Sink&& sink) const {
      sink(view{&(*all_)[p.index], reads_.get()});
    }

   private:
    std::shared_ptr<const std::vector<sample>> all_;
    std::shared_ptr<std::size_t> reads_;
  };

  explicit open_samples(std::vector<sample> all)
      : all_(std::make_shared<const std::vector<sample>>(std::move(all))) {}
  [[nodiscard]] std::uint64_t size() const { return all_->size(); }
  [[nodiscard]] std::shared_ptr<const std::vector<std::uint64_t>> starts() const { return nullptr; }
  [[nodiscard]] std::string describe() const { return "open samples"; }
  [[nodiscard]] std::uint64_t fingerprint() const { return all_->size(); }
  [[nodiscard]] reader connect() const { return reader(*this); }
  [[nodiscard]] std::size_t reads() const { return *reads_; }

 private:
  std::shared_ptr<const std::vector<sample>> all_;
  std::shared_ptr<std::size_t> reads_ = std::make_shared<std::size_t>(0);
};

}  // namespace penstock_test
