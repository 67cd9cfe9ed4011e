// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>) || !__has_include(<nlohmann/json.hpp>)
#error "penstock/source/lerobot.hpp needs Arrow C++ and nlohmann-json: link penstock::arrow"
#endif

#include <penstock/codec/arrow_value.hpp>
#include <penstock/codec/layouts/mds_encoding.hpp>
#include <penstock/source/robots/lerobot_reader.hpp>
#include <penstock/source/windows.hpp>
#include <penstock/stage/decode.hpp>

namespace penstock::inline v0_1 {

/// Which samples `lerobot` has.
struct lerobot_options {
  /// The numbers of episodes; none: all. Samples are in the order of the table, as LeRobot's are.
  std::vector<std::uint64_t> episodes = {};
  /// How far an offset may be from a multiple of a frame's time, and a frame from the time of its row, in
  /// seconds, besides what float, in which tables have times, rounds: LeRobot's `tolerance_s`.
  double tolerance = 1e-4;
};

namespace detail {

/// Reads a feature of numbers: an array of the shape that `meta/info.json` says; of shape (1), which tables
/// hold as a number, of no dimension.
template <class T>
struct lerobot_array {
  static constexpr std::string_view codec_name = "column";
  static constexpr bool reads_columns = true;
  struct scratch {
    buffer values;
    typename arrow_value<T>::scratch one;
    T number;
  };

  extents row = {};

  template <class Value>
  [[nodiscard]] npy_array<T> decode(const Value& in, scratch& s) const {
    if constexpr (arrow_member<Value>) {
      const bytes_view found = bytes_of(in, s);
      if (found.size() != row.elements() * sizeof(T)) [[unlikely]]
        throw error(errc::shape, {"the row has ", found.size() / sizeof(T),
                                  " numbers, and meta/info.json says the shape ", to_string(row)});
      return {found, row, false, s.values};
    } else {
      no_arrow_column(codec_name);
    }
  }

 private:
  template <class Value>
  [[nodiscard]] static bytes_view bytes_of(const Value& in, scratch& s) {
    if (const std::byte* const there = in.plain(arrow_number_of<T>)) return {there, sizeof(T)};
    if (const bytes_view flat = in.listed(arrow_number_of<T>); !flat.empty()) return flat;
    const arrow_cell cell = in.cell();
    if (cell.type().number != arrow_number::none) {
      s.number = arrow_value<T>{}.decode(in, s.one);
      return {reinterpret_cast<const std::byte*>(&s.number), sizeof(T)};
    }
    return find_arrow_array(cell, arrow_number_of<T>, sizeof(T)).values;
  }
};

template <class T>
using lerobot_column = typename std::conditional_t<arrow_number_of<T> != arrow_number::none,
                                                   std::type_identity<lerobot_array<T>>,
                                                   std::type_identity<arrow_value<T>>>::type;
template <class C>
inline constexpr std::string_view dtype_of_codec = "";
template <class T>
inline constexpr std::string_view dtype_of_codec<lerobot_array<T>> = mds_dtype<T>;
template <>
inline constexpr std::string_view dtype_of_codec<arrow_value<bool>> = "bool";
template <>
inline constexpr std::string_view dtype_of_codec<arrow_value<std::string_view>> = "string";

/// The codec of a column, which knows the feature's shape. Throws `errc::argument` for another dtype.
template <class Field>
[[nodiscard]] typename Field::type lerobot_codec(const lerobot_tables& tables) {
  using codec_type = typename Field::type;
  constexpr std::string_view dtype = dtype_of_codec<codec_type>;
  const lerobot_feature& said = tables.feature(Field::name);
  if (!dtype.empty() && said.dtype != dtype)
    throw error(errc::argument, {"the feature '", Field::name, "' is of the dtype ", said.dtype,
                                 ", and its column reads ", dtype})
        .in_file(tables.info_path());
  codec_type made{};
  if constexpr (requires { made.row = extents(); }) {
    std::uint64_t all = 1;
    for (const std::uint64_t length : said.shape) {
      constexpr std::uint64_t most = std::uint64_t{1} << 32;
      const bool fits = length != 0 && length <= most / all && made.row.push_back(length);
      if (!fits)
        throw error(errc::format, {"the shape of the feature '", Field::name,
                                   "' has a length of 0, more than 8 dimensions, or more than 2^32 elements"})
            .in_file(tables.info_path());
      all *= length;
    }
    if (all == 1 && made.row.rank() == 1) made.row = {};
  }
  return made;
}

template <bool Keep, class T>
using keep_type = std::conditional_t<Keep, light_tuple<T>, light_tuple<>>;
template <bool Keep, class T>
[[nodiscard]] auto keep_value([[maybe_unused]] const T& value) {
  if constexpr (Keep)
    return make_light_tuple(value);
  else
    return light_tuple<>{};
}
template <class... Packs>
using joined_pack = decltype(join_all(std::declval<Packs>()...));

template <class Name, class Pack>
inline constexpr bool name_in_pack = false;
template <class Name, class... Ts>
inline constexpr bool name_in_pack<Name, light_tuple<Ts...>> =
    (std::same_as<Name, typename Ts::name_type> || ...);
template <class Field>
inline constexpr bool is_camera = film_codec<typename Field::type>;

template <class... Columns, class... Offsets>
[[nodiscard]] auto lerobot_rows(const lerobot_places& places, const lerobot_options& options,
                                const light_tuple<Columns...>*, const light_tuple<Offsets...>& offsets) {
  if constexpr (sizeof...(Columns) == 0) {
    return no_lerobot_rows{};
  } else {
    const auto rows =
        parquet(places.tables.data_files) | decode<Columns...>(lerobot_codec<Columns>(places.tables)...);
    if constexpr (sizeof...(Offsets) == 0)
      return rows;
    else
      return offsets.apply([&](const Offsets&... each) {
        return as_plan(windows(rows, places.known,
                               {.rate = places.tables.fps, .tolerance = options.tolerance}, each...));
      });
  }
}
template <class... Offsets>
[[nodiscard]] std::vector<column_offsets> listed_offsets(const light_tuple<Offsets...>& all) {
  std::vector<column_offsets> lists;
  all.apply([&](const Offsets&... each) { (lists.push_back({Offsets::name_type::value, each}), ...); });
  return lists;
}
template <class Pack>
struct names_of_pack;
template <class... Ts>
struct names_of_pack<light_tuple<Ts...>> {
  using type = light_tuple<typename Ts::name_type...>;
  static constexpr std::array<std::string_view, sizeof...(Ts)> values{Ts::name_type::value...};
};

}  // namespace detail

/// A camera of `lerobot`, whose frames are films. Needs `#include <penstock/codec/video.hpp>`.
template <fixed_string Name, class Codec = video>
using camera = field<Name, Codec>;
/// A column of `lerobot`: numbers of type T, as an array of the feature's shape, `bool`, or
/// `std::string_view`.
template <fixed_string Name, class T>
using column = field<Name, detail::lerobot_column<T>>;

/// The source that `lerobot` makes of a data set.
template <class Rows, class Names, class Cameras, class Own>
class lerobot_source : public opens_as_plan<lerobot_source<Rows, Names, Cameras, Own>> {
 public:
  using penstock_part = source_tag;
  using reader = detail::lerobot_reader<Rows, Names, Cameras, Own>;
  using element = typename reader::element;
  static constexpr std::string_view source_name = "lerobot";
  static constexpr bool one_at_a_time = Cameras::size != 0 || Rows::one_at_a_time;

  lerobot_source(Rows rows, shared<const detail::lerobot_places> places)
      : rows_(std::move(rows)), places_(std::move(places)), starts_(new const std::vector(places_->firsts)) {}

  [[nodiscard]] std::uint64_t size() const noexcept { return places_->firsts.back(); }
  /// Where episodes begin.
  [[nodiscard]] shared<const std::vector<std::uint64_t>> starts() const noexcept { return starts_; }
  [[nodiscard]] std::string describe() const {
    return detail::text({"lerobot(", places_->tables.folder, "): ", size(), " frames of ",
                         places_->tables.chosen.size(), " episodes"});
  }
  /// Covers the tables, the sizes of films, the episodes that are chosen and the offsets.
  [[nodiscard]] std::uint64_t fingerprint() const {
    class fingerprint h;
    h.add(source_name, places_->tables.mark);
    for (const std::uint64_t episode : places_->tables.chosen) h.add(episode);
    if (places_->windows) h.add(places_->windows->fingerprint());
    if constexpr (requires { rows_.source(); }) h.add(rows_.source().fingerprint());
    return h.value();
  }
  [[nodiscard]] reader connect(const projection& used = {}) const { return reader(rows_, used, places_); }

  /// Frames per second.
  [[nodiscard]] double fps() const noexcept { return places_->tables.fps; }
  /// The texts of all tasks, by their number.
  [[nodiscard]] const std::vector<std::string>& tasks() const noexcept { return places_->tables.tasks; }
  /// What `meta/stats.json` says of a feature. Throws `errc::missing` if it says nothing.
  [[nodiscard]] const lerobot_statistics& stats(std::string_view feature) const {
    const auto& all = places_->tables.statistics;
    const auto found = all.find(feature);
    if (found != all.end()) return found->second;
    std::string names;
    for (const auto& [name, said] : all) detail::list_name(names, name);
    throw error(errc::missing, {"the data set has no statistics of '", feature, "'; it has some of: ", names})
        .in_file(places_->tables.folder + "/meta/stats.json");
  }

 private:
  Rows rows_;
  shared<const detail::lerobot_places> places_;
  shared<const std::vector<std::uint64_t>> starts_;
};

namespace detail {

template <class... Fields, class... Offsets>
[[nodiscard]] auto make_lerobot(std::string_view folder, const lerobot_options& options,
                                const Offsets&... offsets) {
  constexpr bool defined = (is_defined<typename Fields::type> && ...);
  static_assert(sizeof...(Fields) != 0,
                "penstock: lerobot<> names nothing; write "
                "lerobot<camera<\"observation.images.top\">, column<\"action\", float>>(folder)");
  static_assert(defined,
                "penstock: a camera of lerobot is decoded by video: #include <penstock/codec/video.hpp>, and "
                "link penstock::video");
  if constexpr (sizeof...(Fields) != 0 && defined) {
    constexpr auto is_text = []<class Name>(std::type_identity<Name>) {
      return std::same_as<Name, name_of<"task">>;  // of the row's task, whose number alone is in the table
    };
    using named = joined_pack<light_tuple<>, keep_type<!is_camera<Fields>, Fields>...>;
    using columns =
        joined_pack<light_tuple<>, keep_type<!is_camera<Fields> &&
                                                 !is_text(std::type_identity<typename Fields::name_type>()),
                                             Fields>...>;
    using cameras = joined_pack<light_tuple<>, keep_type<is_camera<Fields>, Fields>...>;
    constexpr bool differ = names_differ<Fields...>();
    constexpr bool fixed = (name_in_pack<typename Fields::name_type, lerobot_numbers> || ...);
    constexpr bool known = (name_in_pack<typename Offsets::name_type, joined_pack<columns, cameras>> && ...);
    static_assert(differ, "penstock: lerobot names a feature twice; name each once");
    static_assert(!fixed,
                  "penstock: samples of lerobot have \"episode_index\", \"frame_index\", \"timestamp\", "
                  "\"index\" and \"task_index\" anyway; do not name them as columns");
    static_assert(known,
                  "penstock: column_at<\"name\"> of lerobot says the offsets of a camera or a column, and "
                  "none of this name is in lerobot<...>");
    if constexpr (differ && !fixed && known) {
      if (!(options.tolerance >= 0))
        throw error(errc::argument, "lerobot: the tolerance is no number of seconds from 0 on");
      const auto to_cameras = join_all(
          light_tuple<>{}, keep_value<name_in_pack<typename Offsets::name_type, cameras>>(offsets)...);
      const auto to_columns = join_all(
          light_tuple<>{}, keep_value<name_in_pack<typename Offsets::name_type, columns>>(offsets)...);
      const shared<const lerobot_places> places(new const lerobot_places(
          lerobot_table_reader(folder, names_of_pack<cameras>::values, options.episodes).read(),
          options.tolerance, listed_offsets(to_cameras)));
      auto rows = lerobot_rows(*places, options, static_cast<const columns*>(nullptr), to_columns);
      return lerobot_source<decltype(rows), typename names_of_pack<named>::type, cameras,
                            typename names_of_pack<std::remove_const_t<decltype(to_cameras)>>::type>(
          std::move(rows), places);
    } else {
      return ill_formed{};
    }
  } else {
    return ill_formed{};
  }
}

}  // namespace detail

/// A LeRobot data set of format v3.0: tables in Parquet, and films in MP4 that hold several episodes each.
///
///     const auto data =
///         lerobot<camera<"observation.images.top">, camera<"observation.images.wrist">,
///                 column<"action", float>>(folder, {},
///                                          column_at<"observation.images.top">{-0.1, 0.0},
///                                          column_at<"action">(row_offsets::from_to(0, 15)));
///     const auto policy = data | shuffle(seed(7)) |
///                         map<"observation.images.top">(
///                             random_crop(40, 40),
///                             normalize<3>(data.stats("observation.images.top")), to_chw()) |
///                         map<"action">(mean_std(data.stats("action"))) | batch(4);
///
/// In: the folder; what samples have; `column_at` for cameras and columns of which a sample has several rows:
/// LeRobot's `delta_timestamps`, in seconds or in rows, as for `windows`. A camera is a feature of the dtype
/// "video". A column is a feature of numbers, truth values or texts, of exactly the type that it names; or
/// any `field<"name", Codec>` of the table, as `field<"observation.images.top.bytes", png>` for pictures.
/// Out: a record. A column without offsets is an array of the shape that `meta/info.json` says, or a number
/// where that is (1); a camera a frame of (height, width, 3), 8 bits of RGB, which is decoded when the sample
/// has its place in the batch, through the operations on images. With offsets both have one more dimension
/// in front, and "action_is_pad" says of "action" which rows its episode does not have: the first or the last
/// row stands there. Operations on images draw one rectangle for all frames of a camera. Besides,
/// "episode_index", "frame_index", "timestamp", "index" and "task_index", as LeRobot has them; and "task",
/// the text, for `column<"task", std::string_view>`.
/// Kind: an indexed source, with a sample for each row of the episodes that are chosen; it keeps every
/// guarantee. Windows never cross an episode. `starts` are those of episodes. The key is "3:17": of episode 3
/// the frame 17.
/// Making it reads the metadata, and of all tables of data with a chosen episode the columns of episodes,
/// times and tasks, in the thread that calls; 8 bytes a row are kept. A film's header and index are read once
/// in a run, when it is needed first: 48 bytes a frame. Films are mapped.
/// Cost per sample: that of evaluating the rows, as `windows` and `parquet` have it, and of decoding: for
/// frames of a film one binary search each, and the packets from the key frame before them on. No allocation
/// but FFmpeg's.
/// Errors, with the file: errc::format for another version than 3, with what converts it, and for tables
/// that contradict each other; errc::missing for a data set without episodes, for a film that is not there
/// and, when it is evaluated, for a frame that is further from the time of its row than `tolerance`;
/// errc::argument for a feature that is not there, with those that are, for another dtype, and for an episode
/// that there is not; errc::shape for rows and films of another shape than `meta/info.json` says; and what
/// `parquet`, `windows` and `video` throw.
/// Threads: any number at once.
/// Source: lerobot 0.4, `LeRobotDataset.__getitem__`, `_get_query_indices`, `decode_video_frames`.
template <class... Fields, class... Offsets>
[[nodiscard]] auto lerobot(std::string_view folder, const lerobot_options& options = {},
                           const Offsets&... offsets) {
  return detail::make_lerobot<Fields...>(folder, options, offsets...);
}

}  // namespace penstock::inline v0_1
