// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/part.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

/// Which of a sequence of things pass: what take, skip and shard are where only a count is known. A pure function of the number.
class selection {
 public:
  void skip(std::uint64_t n) { steps_.push_back({kind::skip, n, 0}); }
  void take(std::uint64_t n) { steps_.push_back({kind::take, n, 0}); }
  void shard(std::uint64_t rank, std::uint64_t world) { steps_.push_back({kind::shard, world, rank}); }

  enum class verdict { pass, drop, end };
  [[nodiscard]] bool trivial() const noexcept { return steps_.empty(); }
  [[nodiscard]] verdict look(std::uint64_t number) const noexcept {
    for (const one& s : steps_) {
      if (s.what == kind::skip) {
        if (number < s.n) return verdict::drop;
        number -= s.n;
      } else if (s.what == kind::take) {
        if (number >= s.n) return verdict::end;
      } else {
        if (number % s.n != s.rank) return verdict::drop;
        number /= s.n;
      }
    }
    return verdict::pass;
  }

 private:
  enum class kind { skip, take, shard };
  struct one {
    kind what;
    std::uint64_t n, rank;
  };
  std::vector<one> steps_;
};

namespace detail {

/// The selection that the stages at places [First, Last) of a plan make.
template <std::size_t First, std::size_t Last, class... Stages>
selection select_between(const std::tuple<Stages...>& stages) {
  selection all;
  const auto one = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    const auto& stage = std::get<I>(stages);
    using type = std::remove_cvref_t<decltype(stage)>;
    if constexpr (I >= First && I < Last) {
      if constexpr (part_of_kind<type, shard_tag>)
        all.shard(stage.part.rank, stage.part.size);
      else if constexpr (part_of_kind<type, order_tag> && type::stage_name == std::string_view("skip"))
        all.skip(stage.count);
      else if constexpr (part_of_kind<type, order_tag>)
        all.take(stage.count);
    }
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (one(std::integral_constant<std::size_t, Is>{}), ...);
  }(std::index_sequence_for<Stages...>{});
  return all;
}

}  // namespace detail

}  // namespace penstock::inline v0_1
