// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/device/concepts.hpp>
#include <penstock/device/image/image_places.hpp>
#include <penstock/device/image/image_values.hpp>
#include <penstock/image/crop.hpp>

#include <tuple>

/// The host's operations on images as one operation of a device.
namespace penstock::inline v0_1 {

namespace mistakes {

struct image_operation_on_host_only : about_expression {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: this operation on images runs on the host only; write it in map<\"jpg\">(f) before batch, "
        "and in on_device flips, crops, pad, normalize, to_float, to_half, to_bfloat16 and to_chw");
  }
};
struct device_image_of_other_numbers : about_element {
  static consteval void explain(auto reached) {
    static_assert(
        never<decltype(reached)>,
        "penstock: operations on images on a device get images of 8 bits, and this column has other "
        "numbers; leave normalize, to_float and to_half away before batch, and write them in "
        "on_device");
  }
};
struct device_image_of_uneven_column : about_element {
  static consteval void explain(auto reached) {
    static_assert(never<decltype(reached)>,
                  "penstock: operations on images on a device get images of one size, and this column is "
                  "ragged or padded; write resize(n) or a crop before batch, without a policy for the field");
  }
};

}  // namespace mistakes

namespace detail {

/// An image as it lies in its slot.
template <std::size_t Channels>
class image_in_slot : public image_expression<image_in_slot<Channels>, std::uint8_t, Channels> {
 public:
  using base = image_expression<image_in_slot<Channels>, std::uint8_t, Channels>;
  using typename base::view_type;
  [[nodiscard]] image_size size() const;
  [[nodiscard]] view_type read(const image_part& part) const;
  [[nodiscard]] image_scratch& memory() const;
};

template <class Op, class... These>
inline constexpr bool is_one_of = (std::is_same_v<Op, These> || ...);
template <class Op>
inline constexpr bool runs_on_device = is_one_of<Op, flip_operation, crop_operation, center_crop_operation,
                                                 random_crop_operation, pad_operation, to_chw_operation>;
template <class Out>
inline constexpr bool runs_on_device<convert_operation<Out>> = true;
template <std::size_t Channels>
inline constexpr bool runs_on_device<normalize_operation<Channels>> = true;

/// How many channels a `normalize` asks for; 1 if it serves any number.
template <class Op>
inline constexpr std::size_t channels_asked = 1;
template <std::size_t Channels>
inline constexpr std::size_t channels_asked<normalize_operation<Channels>> = Channels;
template <class... Ops>
inline constexpr std::size_t channels_of_all = [] {
  std::size_t found = 1;
  ((found = found == 1 ? channels_asked<Ops> : found), ...);
  return found;
}();

template <class Op>
inline constexpr bool draws_for_image = requires { requires Op::template uses_random<image_in_slot<3>>; };

/// What operations, one after another, make of an image on the host, or why they cannot.
template <class Value, class... Ops>
struct image_way {
  using number = typename Value::value_type;
  using wrong = mistakes::none;
};
template <class Wrong>
struct no_image_way {
  using number = void;
  using wrong = Wrong;
};
template <class Value, class Op>
concept image_step = std::invocable<const Op&, const Value&, const call<image_scratch>&>;
template <class Value, class Op, class... Rest>
struct image_way<Value, Op, Rest...> : no_image_way<typename Op::template wrong_argument_for<Value>> {};
template <class Value, class Op, class... Rest>
  requires(!runs_on_device<Op>)
struct image_way<Value, Op, Rest...> : no_image_way<mistakes::image_operation_on_host_only> {};
// Where planes are made does not matter to a kernel.
template <class Value, class... Rest>
struct image_way<Value, to_chw_operation, Rest...> : image_way<Value, Rest...> {};
template <class Value, class Op, class... Rest>
  requires(runs_on_device<Op> && image_step<Value, Op>)
struct image_way<Value, Op, Rest...>
    : image_way<
          std::remove_cvref_t<std::invoke_result_t<const Op&, const Value&, const call<image_scratch>&>>,
          Rest...> {};

/// The views of columns that hold equal images of 8 bits.
template <class View>
inline constexpr bool is_image_column = false;
template <class T>
inline constexpr bool is_image_column<tensor_view<T>> = std::is_same_v<std::remove_const_t<T>, std::uint8_t>;
template <class T>
inline constexpr bool is_image_column<strided_view<T>> = std::is_same_v<std::remove_const_t<T>, std::uint8_t>;
template <class View>
inline constexpr bool is_even_column = false;
template <class T>
inline constexpr bool is_even_column<tensor_view<T>> = true;
template <class T>
inline constexpr bool is_even_column<strided_view<T>> = true;

template <class View>
inline constexpr bool is_uneven_view =
    requires(const View& view) { view.offsets(); } || requires(const View& view) { view.sizes(); };

template <class Way>
inline constexpr bool is_right_way = is_right<typename Way::wrong>;

template <class Op>
inline constexpr bool converts_image = false;
template <class Out>
inline constexpr bool converts_image<convert_operation<Out>> = true;

template <class Op>
void refuse_mode(const Op& op) {
  if constexpr (requires { op.mode(); }) check_device_padding(op.mode());
}

template <class T>
inline constexpr image_number image_number_of = std::is_same_v<T, float>      ? image_number::float32
                                                : std::is_same_v<T, half>     ? image_number::float16
                                                : std::is_same_v<T, bfloat16> ? image_number::brain16
                                                                              : image_number::bytes;

}  // namespace detail

/// Operations on images as one kernel: what `on_device` makes of flips, crops, `pad`, `normalize`,
/// `to_float`, `to_half`, `to_bfloat16` and `to_chw` that follow each other. They are the host's own, and
/// refuse the same; but `to_chw` may stand anywhere among them.
///
/// In: a column of images of 8 bits and 1 to 4 channels, of one size: (slots, height, width, channels). Out:
/// the same, or (slots, channels, height, width) behind `to_chw`, of the last operation's numbers.
/// The numbers are the host's, bit for bit, if `normalize` and conversions follow each other; where a flip, a
/// crop or a pad stands between them, the host rounds to `float` there and this does not. Padding is with
/// colours, and all with the same one.
/// Cost: one kernel, which reads the pixels that it needs and writes each number once; 40 bytes of table for
/// each slot if random numbers are drawn, or if there are holes.
/// Errors: `errc::argument`, when it is made, for another `padding_mode`; `errc::shape` for a column of
/// another shape, or with another number of channels than `normalize` has, when you ask for the batch;
/// `errc::argument` for two colours.
/// On `cuda` it needs the kernels: link `penstock::cuda_kernels`, or include
/// `penstock/device/image/kernels.cuh` in one .cu file.
template <class... Ops>
class device_image {
  using way = detail::image_way<detail::image_in_slot<detail::channels_of_all<Ops...>>, Ops...>;
  using made = typename way::number;
  static constexpr bool planes = (std::is_same_v<Ops, to_chw_operation> || ...);

 public:
  static constexpr std::uint64_t streams = (std::uint64_t{detail::draws_for_image<Ops>} + ...);

  template <class View>
    requires(detail::is_image_column<View> && detail::is_right_way<way>)
  using output = made;
  template <class View>
  using wrong_column_for = std::conditional_t<
      !detail::is_right_way<way>, typename way::wrong,
      std::conditional_t<
          detail::is_uneven_view<View>, mistakes::device_image_of_uneven_column,
          std::conditional_t<detail::is_even_column<View>, mistakes::device_image_of_other_numbers,
                             mistakes::operation_wants_image>>>;

  explicit device_image(const Ops&... ops) : ops_(ops...) { (detail::refuse_mode(ops), ...); }

  template <class View>
  [[nodiscard]] extents shape(const View& column, const device_batch& /*batch*/) const {
    const extents& in = column.shape();
    if (in.elements() == 0) return extents(in[0], 0);
    detail::check_image_column(in, detail::channels_of_all<Ops...>);
    rng none(0, 0, 0);  // sizes do not depend on random numbers
    const image_size out = places_of(size_of(in), [&](std::size_t) { return none; }).size();
    detail::check_kernel_size(out.width, out.height);
    (void)values_of(in);
    return planes ? extents(in[0], in[3], out.height, out.width)
                  : extents(in[0], out.height, out.width, in[3]);
  }
  template <class View>
  [[nodiscard]] std::size_t table_bytes(const View& column, const device_batch& batch) const {
    if (column.shape().elements() == 0 || (streams == 0 && !batch.has_holes())) return 0;
    return batch.slots() * sizeof(image_choice);
  }
  template <class View>
  void fill_table(const View& column, const device_batch& batch, std::span<std::byte> table) const {
    const image_size size = size_of(column.shape());
    for (std::size_t slot = 0; slot < batch.slots(); ++slot) {
      image_choice choice;
      if (batch.holds(slot))
        choice = places_of(size, [&](std::size_t number) { return random_of(batch, slot, number); }).choice();
      else
        choice.blank = 1;
      std::memcpy(table.data() + slot * sizeof choice, &choice, sizeof choice);
    }
  }
  template <class Stream, class View>
  void launch(Stream stream, const View& column, const device_batch& batch,
              const device_places& places) const {
    const extents& in = column.shape();
    if (in.elements() == 0) return;
    rng none(0, 0, 0);
    const detail::image_places all = places_of(size_of(in), [&](std::size_t) { return none; });
    const element_strides steps = column.strides();
    image_work work;
    work.from = reinterpret_cast<const std::uint8_t*>(places.input);
    work.to = places.output;
    if (table_bytes(column, batch) != 0) work.choices = reinterpret_cast<const image_choice*>(places.table);
    work.all = all.choice();
    work.slots = batch.slots();
    work.valid = batch.valid();
    work.slot_step = steps[0];
    work.row_step = steps[1];
    work.pixel_step = steps[2];
    work.width = all.size().width;
    work.height = all.size().height;
    work.channels = static_cast<std::uint32_t>(in[3]);
    work.number = detail::image_number_of<made>;
    work.planes = planes;
    values_of(in).write(work);
    if constexpr (std::is_same_v<Stream, host_stream>)
      run_image_work(work);
    else
      launch_image_work(work, stream);
  }

 private:
  [[nodiscard]] static image_size size_of(const extents& in) noexcept {
    return {static_cast<std::uint32_t>(in[2]), static_cast<std::uint32_t>(in[1])};
  }
  [[nodiscard]] static rng random_of(const device_batch& batch, std::size_t slot, std::size_t number) {
    if constexpr (streams != 0)
      return batch.random(slot, number);
    else
      return {0, 0, 0};
  }
  /// Where pixels come from, if the drawing operation number n draws from `random(n)`.
  template <class Random>
  [[nodiscard]] detail::image_places places_of(const image_size& size, const Random& random) const {
    detail::image_places places(size);
    std::size_t number = 0;
    const auto one = [&]<class Op>(const Op& op) {
      if constexpr (detail::draws_for_image<Op>) {
        rng own = random(number++);
        op.follow(places, own);
      } else if constexpr (requires(rng& none) { op.follow(places, none); }) {
        rng none(0, 0, 0);
        op.follow(places, none);
      }
    };
    std::apply([&](const Ops&... ops) { (one(ops), ...); }, ops_);
    return places;
  }
  [[nodiscard]] detail::image_values values_of(const extents& in) const {
    detail::image_values values(detail::to_size(in[3]));
    detail::image_places places(size_of(in));
    const auto one = [&]<class Op>(const Op& op) {
      if constexpr (requires { op.may_fill(places.size()); })
        if (op.may_fill(places.size())) values.fill(op.fill());
      if constexpr (requires { op.statistics(); })
        values.normalize(op.statistics());
      else if constexpr (detail::converts_image<Op>)
        values.scale_to_one();
      rng none(0, 0, 0);
      if constexpr (requires { op.follow(places, none); }) op.follow(places, none);
    };
    std::apply([&](const Ops&... ops) { (one(ops), ...); }, ops_);
    return values;
  }

  std::tuple<Ops...> ops_;
};

namespace detail {

/// Operations on images are of one family: those that follow each other are one kernel.
struct image_family {
  template <class... Ops>
  static auto join(const Ops&... ops) {
    return device_image<Ops...>(ops...);
  }
};
template <std::derived_from<image_operation> Op>
struct device_family<Op> {
  using type = image_family;
};

}  // namespace detail

}  // namespace penstock::inline v0_1
