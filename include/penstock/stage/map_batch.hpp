// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/mapping/batch_maps.hpp>
#include <penstock/stage/batch_columns.hpp>
#include <penstock/stage/map.hpp>

namespace penstock::inline v0_1 {

namespace mistakes {

struct map_batch_without_batch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: map_batch works on the columns of a batch; write batch(n) before it, or map(f) "
                  "for single samples");
  }
};
struct map_batch_after_copy : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: map_batch after pin_and_copy, where batches have left the host; write "
                  "batch(n) | map_batch(f) | pin_and_copy");
  }
};
struct wrong_argument_of_map_batch : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: map_batch's function cannot be called with the columns of a batch; write it "
                  "[](auto& columns) or [](auto& columns, rng& random), and take get<\"name\">(columns), or "
                  "columns.values() if samples are not records");
  }
};
struct returns_no_columns : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: map_batch's function returns something that cannot be columns of a batch; return "
        "nothing if it changes values in place, otherwise an array of numbers or a record of arrays: a "
        "vector, a std::array, a span, a tensor_view or an array expression");
  }
};

}  // namespace mistakes

namespace detail {

template <class F, class Views>
concept random_batch_function =
    !std::invocable<const F&, batch_columns<Views>&> && std::invocable<const F&, batch_columns<Views>&, rng&>;

/// What a function returns for the columns of a batch, or why it cannot be called with them.
template <class F, class Views>
using batch_function_check =
    call_check<F, batch_columns<Views>&, std::type_identity<mistakes::wrong_argument_of_map_batch>>;

}  // namespace detail

/// Changes the values of each batch in place, or replaces its columns with new ones. Made by `map_batch(f)`.
///
/// Write it after `batch` and before `pin_and_copy`. Several in a row each receive what the one before left.
/// Keeps all five guarantees and changes no position. As with `map`, a state does not remember the function.
///
/// `f(columns)` or `f(columns, rng&)` must be callable when const: one object serves all workers at once. See
/// `batch_columns` for what it receives.
/// A function that returns nothing changes values in place; nothing is allocated or copied.
/// Anything else that a function returns replaces all columns: a list of numbers (vector, std::array, span),
/// an array with a `shape()` (`tensor_view`, `whole_tensor`, array expression), or a record of such. The
/// first dimension need not be the size of the batch.
/// The result is copied once, to the memory that the device reads; an array expression writes itself there.
/// `get<"name">(batch)`, or `batch.values()`, is then a span of the list or a `tensor_view` of the array. A
/// returned view must outlive the call; views of the given columns do.
///
/// The generator is keyed by seed, epoch, step (`columns.step()`) and rank, and by the number of this stage
/// among the random ones after `batch`, or by `key("...")`. It draws the same numbers with any number of
/// workers and after a restore.
///
/// Runs in the worker that completed the batch. After `filter` and `unbatch` and over a forward source the
/// consumer completes batches, and calls it. Each block is then a single batch, however small. It is not
/// called for a batch that holds a failed sample, nor for a batch without slots, whose new columns are empty.
///
/// Throws what f throws, when you request its batch, after all batches before it. An `error` gets the batch's
/// first position and the name of this stage.
///
///     const auto pixels = [](std::uint64_t i) { return std::array<float, 3>{static_cast<float>(i), 1, 2}; };
///     auto normalised = generated(1000, pixels) | batch(32) | map_batch([](auto& columns) {
///                         for (float& x : columns.values().flat()) x = (x - 0.5f) / 0.25f;
///                       });
template <class F>
struct map_batch_stage {
  using penstock_part = batch_map_tag;
  static constexpr std::string_view stage_name = "map_batch";
  [[no_unique_address]] F function;
  key address;

  /// Whether it draws random numbers for columns of this type.
  template <class Views>
  static constexpr bool uses_random = detail::random_batch_function<F, Views>;
  /// Whether it draws random numbers at this place in the chain.
  template <class Context>
  static constexpr bool draws_in = uses_random<detail::views_in<Context>>;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }
  /// What it returns for columns of this type, without reference.
  template <class Views>
  using result = std::remove_cvref_t<typename detail::batch_function_check<F, Views>::result>;

  /// Whether it returns new columns.
  template <class Views>
  static constexpr bool returns = !std::is_void_v<result<Views>>;
  /// The columns of batches after this stage, given those before it.
  template <class Context>
  using columns_after =
      std::conditional_t<returns<detail::views_in<Context>>,
                         typename detail::returned_columns<result<detail::views_in<Context>>>::type,
                         typename Context::columns>;

  /// The random stream of this stage, number `number` among the random ones, on a rank.
  [[nodiscard]] std::uint64_t stream(std::uint64_t number, std::uint64_t rank) const noexcept {
    constexpr std::uint64_t of_batches = 0x6d61705f62617463u;
    return mix64(of_batches ^ mix64(address.hash != 0 ? address.hash : number)) ^ mix64(rank);
  }
  template <class Context>
  static consteval auto diagnose() {
    if constexpr (Context::facts.copied) {
      return mistakes::map_batch_after_copy{};
    } else if constexpr (!Context::facts.batched) {
      return mistakes::map_batch_without_batch{};
    } else {
      using check = detail::batch_function_check<F, detail::views_in<Context>>;
      if constexpr (!detail::is_right<typename check::wrong>)
        return typename check::wrong{};
      else if constexpr (returns<detail::views_in<Context>> &&
                         !detail::returned_columns<result<detail::views_in<Context>>>::are_columns)
        return mistakes::returns_no_columns{};
      else
        return mistakes::none{};
    }
  }
};

/// Calls `f` with the columns of each batch; see `map_batch_stage`.
template <class F>
[[nodiscard]] constexpr auto map_batch(F function, key address = {}) {
  return map_batch_stage<F>{std::move(function), address};
}

}  // namespace penstock::inline v0_1
