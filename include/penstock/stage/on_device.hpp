// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/call.hpp>
#include <penstock/core/light_tuple.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/mistake.hpp>
#include <penstock/core/name.hpp>
#include <penstock/core/pipe.hpp>
#include <penstock/device/concepts.hpp>
#include <penstock/run/mapping/device_works.hpp>
#include <penstock/stage/batch_columns.hpp>

#include <tuple>
#include <utility>

namespace penstock::inline v0_1 {

namespace mistakes {

struct on_device_before_copy : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: on_device works on batches that are on a device, and these are not there yet; "
                  "write batch(n) | pin_and_copy(cuda{}) before it, or map(f) before batch");
  }
};
struct on_device_of_host : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: on_device needs a device that computes, and pin_and_copy names none; write "
                  "pin_and_copy(cuda{}), or map(f) before batch");
  }
};
struct on_device_of_field_twice : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: two on_device stages work on one field; write all operations in one, in "
                  "order: on_device<\"jpg\">(f, g)");
  }
};
struct on_device_of_whole_record : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: on_device without a name is for samples that are no records, and these are; "
                  "write on_device<\"jpg\">(f)");
  }
};
struct on_device_draws_after_unbatch : about_expression {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: on_device cannot draw random numbers after unbatch, because rows of a batch do "
                  "not know which piece of a sample they are; write map(f) between unbatch and batch");
  }
};
struct not_a_device_operation : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: on_device is given something that is no operation of a device for this column; "
                  "write #include <penstock/device/image/operations.hpp> for those on images, or give your "
                  "type the members that device_operation lists in <penstock/device/concepts.hpp>");
  }
};

}  // namespace mistakes

namespace detail {

template <class Family>
struct joined_operations {
  static constexpr auto join(const auto& op) { return op; }
};
template <class Family>
  requires(!std::is_void_v<Family>)
struct joined_operations<Family> : Family {};

/// The operations of a stage as they are launched: `done`, then those that are joined already, then the rest.
template <class... Done, class... Run>
constexpr auto join_families(light_tuple<Done...> done, const light_tuple<Run...>& run) {
  if constexpr (sizeof...(Run) == 0) {
    return done;
  } else {
    using family = typename device_family<type_at<0, light_tuple<Run...>>>::type;
    return join(std::move(done), run.apply([](const Run&... all) {
      return make_light_tuple(joined_operations<family>::join(all...));
    }));
  }
}
template <class... Done, class... Run, class Op, class... Rest>
constexpr auto join_families(light_tuple<Done...> done, const light_tuple<Run...>& run, const Op& op,
                             const Rest&... rest) {
  using family = typename device_family<Op>::type;
  if constexpr (sizeof...(Run) == 0) {
    return join_families(std::move(done), make_light_tuple(op), rest...);
  } else {
    using before = typename device_family<type_at<0, light_tuple<Run...>>>::type;
    if constexpr (!std::is_void_v<family> && std::is_same_v<family, before>)
      return join_families(std::move(done), join(run, make_light_tuple(op)), rest...);
    else
      return join_families(join_families(std::move(done), run), make_light_tuple(op), rest...);
  }
}

/// Why operations, one after another, cannot work on a column.
template <class View, class Operations>
struct device_check {
  using wrong = mistakes::none;
};
template <class View, class Op, class... Rest>
struct device_check<View, light_tuple<Op, Rest...>> {
  using type = typename connected_operation<Op>::type;
  static consteval auto find() {
    if constexpr (device_operation<type, View>)
      return typename device_check<tensor_view<typename type::template output<View>>,
                                   light_tuple<Rest...>>::wrong{};
    else if constexpr (requires { typename type::template wrong_column_for<View>; })
      return typename type::template wrong_column_for<View>{};
    else
      return mistakes::not_a_device_operation{};
  }
  using wrong = decltype(find());
};

template <class Columns, class Name>
inline constexpr bool taken_on_device = false;
template <class Columns, class Stage, class Name>
inline constexpr bool taken_on_device<columns_on_device<Columns, Stage>, Name> =
    std::is_same_v<typename Stage::name_type, Name> || taken_on_device<Columns, Name>;

template <class Ops>
inline constexpr std::uint64_t streams_of_all = 0;
template <class... Ops>
inline constexpr std::uint64_t streams_of_all<light_tuple<Ops...>> =
    (device_streams<Ops> + ... + std::uint64_t{0});

}  // namespace detail

/// Operations on a column of each batch, on the device: what crosses the bus is what `batch` wrote, such as
/// 8-bit images, and the device makes numbers of it. Made by `on_device<"name">(f, g, ...)`, or
/// `on_device(f, ...)` if samples are no records.
///
///     const auto loader = frames | batch(32) | pin_and_copy(simulated()) |
///                         on_device(horizontal_flip(), normalize(imagenet), to_chw(), to_half());
///     for (auto&& b : loader.epoch(0)) {
///       const device_array<const half> images = b.device_view();  // (32, 3, height, width)
///     }
///
/// Write it after `pin_and_copy(device)`; the device's session is a `computing_session`, as that of `cuda`.
/// In: a column as `map_batch` would get it. Out: on the device, what the last operation makes of it:
/// `device_view<"jpg">(batch)`, `to_dlpack<"jpg">(batch)`. The host's side, `get<"jpg">(batch)`, stays as it
/// is.
/// Operations: those on images in device/image/operations.hpp, which become one kernel, and types of your own
/// that are a `device_operation`. Each gets what the one before it made.
/// Random numbers are those that `map<"name">(f, g, ...)` would draw at this place in the expression, before
/// `batch`; a `key("...")` may stand at the end. So batches are equal, too, whatever the number of workers or
/// ranks, and after a restore. A state counts the stage as it counts the `map`.
/// Slots without a sample are 0, as on the host.
/// Cost: no copy more than the columns, and one of a table if random numbers are drawn. The device has the
/// column and what is made of it, for each batch in flight.
/// Errors: `errc::shape` if an operation cannot work on the shape of a batch, when you ask for the batch.
/// Keeps all guarantees.
template <class Name, class... Ops>
struct on_device_stage {
  using penstock_part = device_map_tag;
  static constexpr std::string_view stage_name = "on_device";
  /// void if samples are no records.
  using name_type = Name;
  using operations = light_tuple<Ops...>;
  operations all;
  key address;

  static constexpr std::uint64_t own_streams = detail::streams_of_all<operations>;
  /// The number of streams of random numbers that it draws.
  template <class>
  static constexpr std::uint64_t streams = own_streams;
  template <class Context>
  static constexpr bool draws_in = own_streams != 0;
  [[nodiscard]] constexpr std::uint64_t stream_address() const noexcept { return address.hash; }
  /// The index of its column among those of batches of such elements.
  template <class Element>
  static constexpr std::size_t column = [] {
    if constexpr (std::is_void_v<Name>)
      return std::size_t{0};
    else
      return Element::template index_of<Name>;
  }();

  /// Names the stage, and what operations say of themselves, if they have a `describe()`.
  [[nodiscard]] std::string describe() const {
    std::string said(stage_name);
    if constexpr (!std::is_void_v<Name>) said = detail::text({stage_name, "<\"", Name::value, "\">"});
    all.apply([&](const Ops&... each) { (add_description(said, each), ...); });
    return said;
  }

  static void add_description(std::string& said, [[maybe_unused]] const auto& op) {
    if constexpr (requires { op.describe(); }) said += detail::text({", ", op.describe()});
  }

  template <class Context>
  static consteval auto diagnose() {
    if constexpr (!Context::facts.batched || !Context::facts.copied) {
      return mistakes::on_device_before_copy{};
    } else if constexpr (!Context::facts.computes) {
      return mistakes::on_device_of_host{};
    } else if constexpr (own_streams != 0 && Context::facts.expanded) {
      return mistakes::on_device_draws_after_unbatch{};
    } else if constexpr (detail::taken_on_device<typename Context::columns, Name>) {
      return mistakes::on_device_of_field_twice{};
    } else {
      using views = detail::views_in<Context>;
      if constexpr (std::is_void_v<Name>) {
        if constexpr (any_record<views>)
          return mistakes::on_device_of_whole_record{};
        else
          return typename detail::device_check<views, operations>::wrong{};
      } else if constexpr (!has_field<views, Name>) {
        return mistakes::no_such_field{};
      } else {
        return typename detail::device_check<std::tuple_element_t<views::template index_of<Name>, views>,
                                             operations>::wrong{};
      }
    }
  }
};

namespace detail {

template <class Name, class... Ops>
constexpr auto make_on_device(key address, const Ops&... ops) {
  return join_families(light_tuple<>{}, light_tuple<>{}, ops...)
      .apply([&]<class... Joined>(const Joined&... joined) {
        return on_device_stage<Name, Joined...>{make_light_tuple(joined...), address};
      });
}
/// With a `key` behind the operations, or without.
template <class Name, class... Ops>
constexpr auto on_device_of(const Ops&... given) {
  const std::tuple<const Ops&...> all(given...);
  constexpr bool keyed = std::is_same_v<std::tuple_element_t<sizeof...(Ops) - 1, std::tuple<Ops...>>, key>;
  return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    if constexpr (keyed)
      return make_on_device<Name>(std::get<sizeof...(Ops) - 1>(all), std::get<Is>(all)...);
    else
      return make_on_device<Name>(key{}, std::get<Is>(all)...);
  }(std::make_index_sequence<sizeof...(Ops) - (keyed ? 1 : 0)>{});
}

}  // namespace detail

/// Works on the values of batches whose samples are no records; see `on_device_stage`.
template <class Op, class... Ops>
[[nodiscard]] constexpr auto on_device(const Op& op, const Ops&... more) {
  return detail::on_device_of<void>(op, more...);
}
/// Works on a field; see `on_device_stage`.
template <fixed_string Name, class Op, class... Ops>
[[nodiscard]] constexpr auto on_device(const Op& op, const Ops&... more) {
  return detail::on_device_of<name_of<Name>>(op, more...);
}

}  // namespace penstock::inline v0_1
