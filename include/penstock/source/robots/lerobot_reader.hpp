// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/source/files/loaded_once.hpp>
#include <penstock/source/joined/window_form.hpp>
#include <penstock/source/robots/lerobot_tables.hpp>
#include <penstock/source/zip.hpp>
#include <penstock/video/film.hpp>

#include <optional>
#include <tuple>

/// Reading the samples of a LeRobot data set: a row of its tables, and frames of its films.
namespace penstock::inline v0_1::detail {

/// A codec of films of which an index can be kept; see `video`.
template <class C>
concept film_codec =
    requires(const C& c, bytes_view file, const typename C::index_type& index, typename C::scratch& s) {
      { c.read_index(file) } -> std::same_as<typename C::index_type>;
      { c.film_of(index, s) } -> lazy_film;
    };

/// A film whose errors name its file.
template <class Film>
class film_in_file : public Film {
 public:
  film_in_file(const Film& of, const mapped_file::session& session, object_id file, const std::string& path)
      : Film(of), session_(&session), path_(&path), file_(file) {}

  template <class Draw>
  void each_of(std::span<const std::uint32_t> frames, const Draw& draw) const {
    in_file(*path_, [&] { Film::each_of(frames, draw); });
    session_->confirm(file_);
  }

 private:
  const mapped_file::session* session_;
  const std::string* path_;
  object_id file_;
};

/// The frame that is shown nearest to a row's time in an episode, which begins at `from`. Throws
/// `errc::missing` if it is further away than `tolerance`.
template <class Film>
[[nodiscard]] std::uint32_t nearest_frame(const Film& film, double from, float time, double tolerance) {
  const double seconds = from + double{time};
  // Beyond 2,048 s it is more than LeRobot's tolerance.
  const double rounded = std::fabs(double{time}) * 0x1p-24;
  std::uint64_t first = 0, last = film.frames();  // the first frame that is not before
  while (first < last) {
    const std::uint64_t middle = first + (last - first) / 2;
    if (film.time_of(middle) < seconds)
      first = middle + 1;
    else
      last = middle;
  }
  const auto off = [&](std::uint64_t frame) { return std::fabs(film.time_of(frame) - seconds); };
  if (first == film.frames() || (first != 0 && off(first - 1) < off(first))) --first;  // wraps without frames
  if (film.frames() != 0 && off(first) <= tolerance + rounded) [[likely]]
    return static_cast<std::uint32_t>(first);
  throw error(errc::missing,
              {"the film has no frame at ", std::to_string(seconds), " s",
               film.frames() == 0 ? std::string()
                                  : "; the nearest is at " + std::to_string(film.time_of(first)) + " s",
               ", and the tolerance is ", std::to_string(tolerance), " s"});
}

/// Where the samples of a data set are.
struct lerobot_places {
  lerobot_tables tables;
  episodes known;
  std::vector<std::uint64_t> firsts;     // the first sample of each episode that is chosen, and their number
  std::optional<window_places> windows;  // of the cameras that have offsets
  double tolerance = 0;

  lerobot_places(lerobot_tables made, double within, std::span<const column_offsets> cameras)
      : tables(std::move(made)), known(tables.lengths), firsts{0}, tolerance(within) {
    for (const std::uint64_t episode : tables.chosen)
      firsts.push_back(firsts.back() + tables.lengths[to_size(episode)]);
    if (!cameras.empty())
      windows.emplace(known, window_options{.rate = tables.fps, .tolerance = tolerance}, cameras);
  }

  [[nodiscard]] window_place at(std::uint64_t i) const noexcept {
    const auto next = std::upper_bound(firsts.begin() + 1, firsts.end() - 1, i);
    const auto which = static_cast<std::size_t>(next - firsts.begin() - 1);
    const std::uint64_t episode = tables.chosen[which], begin = known.starts()[to_size(episode)];
    return {episode, begin, known.starts()[to_size(episode) + 1], begin + (i - firsts[which])};
  }
};

/// In the place of rows, where only cameras are read.
struct no_lerobot_rows {
  using element = record<>;
  static constexpr bool one_at_a_time = false;
};

/// What samples have besides columns and cameras.
using lerobot_numbers =
    light_tuple<field<"episode_index", std::int64_t>, field<"frame_index", std::int64_t>,
                field<"timestamp", float>, field<"index", std::int64_t>, field<"task_index", std::int64_t>>;

/// `Names`: of the columns, and "task" if samples have its text. `Cameras`: fields of film codecs. `Own`: the
/// names of cameras with offsets.
template <class Rows, class Names, class Cameras, class Own>
class lerobot_reader;
template <class Rows, class... Names, class... Cameras, class... Own>
class lerobot_reader<Rows, light_tuple<Names...>, light_tuple<Cameras...>, light_tuple<Own...>> {
  static constexpr bool has_rows = !std::same_as<Rows, no_lerobot_rows>;
  using row_type = std::remove_cvref_t<typename Rows::element>;

  template <class Camera>
  using film_type =
      film_in_file<std::remove_cvref_t<decltype(std::declval<const typename Camera::type&>().film_of(
          std::declval<const typename Camera::type::index_type&>(),
          std::declval<typename Camera::type::scratch&>()))>>;
  template <class Name>
  static constexpr std::size_t list_of = index_of_field<Name, basic_field<Own, int>...>();
  template <class Camera>
  using frames_type =
      film_clip<film_type<Camera>, std::remove_cvref_t<decltype(std::declval<film_type<Camera>>().picture())>,
                list_of<typename Camera::name_type> == not_found>;

  // Windows number their rows; here that is "frame_index".
  template <class Name>
  static constexpr bool passes = !std::same_as<Name, name_of<"step">> || (std::same_as<Name, Names> || ...);
  template <class Row>
  struct packs;
  template <class... Fields>
  struct packs<record<Fields...>> {
    using type = typename record_of_packs<
        light_tuple<>,
        std::conditional_t<
            passes<typename Fields::name_type>,
            light_tuple<basic_field<typename Fields::name_type, zipped<typename Fields::type>>>,
            light_tuple<>>...,
        light_tuple<basic_field<typename Cameras::name_type, frames_type<Cameras>>...>,
        light_tuple<basic_field<typename pad_name<Own>::type, window_mask<0>>...>, lerobot_numbers,
        std::conditional_t<(std::same_as<Names, name_of<"task">> || ...),
                           light_tuple<field<"task", std::string_view>>, light_tuple<>>>::type;
  };

  template <class Camera>
  struct camera_state {
    typename Camera::type codec{};
    loaded_once<typename Camera::type::index_type> films;
    typename Camera::type::index_type none{};
    bool used = true;
    explicit camera_state(std::size_t files) : films(files, files) {}
  };
  template <class Camera>
  struct camera_worker {
    typename Camera::type::scratch scratch;
    std::vector<std::uint32_t> frames;
  };
  struct no_chain {
    struct worker {};
  };
  template <class Plan>
  struct opened_rows {
    using chain_type = typename row_chain<Plan>::type;
    typename Plan::source_type::reader reader;
    chain_type chain;
    opened_rows(const Plan& p, const projection& used)
        : reader(connect_source_of(p, used)), chain(row_chain<Plan>::of(p, &reader)) {}
  };
  struct without_rows {
    using chain_type = no_chain;
    without_rows(const Rows&, const projection&) noexcept {}
  };
  using rows_type = typename std::conditional_t<has_rows, std::type_identity<opened_rows<Rows>>,
                                                std::type_identity<without_rows>>::type;

  struct opened {
    rows_type rows;
    shared<const lerobot_places> places;
    mapped_file::session session;
    mutable std::tuple<camera_state<Cameras>...> cameras;
    opened(const Rows& plan, const projection& used, shared<const lerobot_places> where)
        : rows(plan, used),
          places(std::move(where)),
          session(mapped_file(places->tables.film_files).connect()),
          cameras((static_cast<void>(sizeof(Cameras)), places->tables.film_files.size())...) {
      std::apply([&](auto&... each) { ((each.used = used.uses(Cameras::name)), ...); }, cameras);
    }
  };

 public:
  using element = typename packs<row_type>::type;
  static constexpr reader_traits traits = {.takes_fetched = false};
  struct worker {
    typename rows_type::chain_type::worker rows;
    std::tuple<camera_worker<Cameras>...> cameras;
    std::array<buffer, sizeof...(Own) + 1> masks;
    worker() noexcept {}  // see joined_plans.hpp
  };

  lerobot_reader(const Rows& plan, const projection& used, shared<const lerobot_places> places)
      : opened_(new const opened(plan, used, std::move(places))) {}

  template <class Sink>
  void evaluate(position p, worker& w, Sink&& sink) const {
    const window_place at = opened_->places->at(p.index);
    if constexpr (has_rows) {
      const position own{p.epoch, at.row};
      opened_->rows.chain.evaluate(
          {own, own}, w.rows, [&](const auto& row) { sink(make(at, w, row)); }, untimed{});
    } else {
      sink(make(at, w, record<>()));
    }
  }
  /// The number of the episode, and that of the frame in it: "3:17".
  [[nodiscard]] std::string key(std::uint64_t index) const {
    const window_place at = opened_->places->at(index);
    return text({opened_->places->tables.numbers[to_size(at.episode)], ":", at.row - at.begin});
  }
  [[nodiscard]] std::string url(std::uint64_t index) const {
    if constexpr (has_rows)
      return url_of(opened_->rows.reader, {0, opened_->places->at(index).row});
    else
      return opened_->places->tables.folder;
  }
  [[nodiscard]] kept_counters kept() const {
    if constexpr (has_rows)
      return kept_of(opened_->rows.reader);
    else
      return {};
  }

 private:
  template <class Row>
  [[nodiscard]] element make(const window_place& at, worker& w, const Row& row) const {
    return [&]<std::size_t... Is>(std::index_sequence<Is...>) {
      return element(made_by{}, [&] {
        return value<typename element::template field_at<Is>::name_type>(at, w, row);
      }...);
    }(std::make_index_sequence<element::size>{});
  }
  template <class Name, class Row>
  [[nodiscard]] auto value(const window_place& at, worker& w, const Row& row) const {
    const lerobot_places& places = *opened_->places;
    const lerobot_tables& tables = places.tables;
    constexpr std::size_t camera = index_of_field<Name, Cameras...>();
    constexpr std::size_t mask = index_of_field<Name, basic_field<typename pad_name<Own>::type, int>...>();
    if constexpr (Row::template index_of<Name> != not_found) {
      return element_value<Name>(get<Row::template index_of<Name>>(row));
    } else if constexpr (camera != not_found) {
      return frames<camera>(at, w);
    } else if constexpr (mask != not_found) {
      return window_mask<0>(*places.windows, at, mask, w.masks[mask]);
    } else if constexpr (std::same_as<Name, name_of<"episode_index">>) {
      return static_cast<std::int64_t>(tables.numbers[to_size(at.episode)]);
    } else if constexpr (std::same_as<Name, name_of<"frame_index">>) {
      return static_cast<std::int64_t>(at.row - at.begin);
    } else if constexpr (std::same_as<Name, name_of<"timestamp">>) {
      return tables.times[to_size(at.row)];
    } else if constexpr (std::same_as<Name, name_of<"index">>) {
      return static_cast<std::int64_t>(tables.first_index[to_size(at.episode)] + (at.row - at.begin));
    } else if constexpr (std::same_as<Name, name_of<"task_index">>) {
      return static_cast<std::int64_t>(tables.task[to_size(at.row)]);
    } else {
      return std::string_view(tables.tasks[tables.task[to_size(at.row)]]);
    }
  }
  template <class Name, class V>
  [[nodiscard]] static auto element_value(const V& given) {
    return typename element::template field_at<element::template index_of<Name>>::type(given);
  }

  template <std::size_t C>
  [[nodiscard]] auto frames(const window_place& at, worker& w) const {
    using camera = std::tuple_element_t<C, std::tuple<Cameras...>>;
    constexpr std::size_t list = list_of<typename camera::name_type>;
    const lerobot_places& places = *opened_->places;
    camera_state<camera>& state = std::get<C>(opened_->cameras);
    camera_worker<camera>& own = std::get<C>(w.cameras);
    const lerobot_film& where = places.tables.films[to_size(at.episode) * sizeof...(Cameras) + C];
    const std::string& path = places.tables.film_files[where.file];
    own.frames.clear();
    const auto& index = state.used ? open<camera>(state, where.file, path) : state.none;
    const film_type<camera> film(state.codec.film_of(index, own.scratch), opened_->session,
                                 static_cast<object_id>(where.file), path);
    if (state.used) {
      const auto add = [&](std::uint64_t row) {
        own.frames.push_back(
            nearest_frame(film, where.from, places.tables.times[to_size(row)], places.tolerance));
      };
      in_file(path, [&] {
        if constexpr (list == not_found)
          add(at.row);
        else
          for (std::size_t k = 0; k < places.windows->length(list); ++k)
            add(places.windows->row(at, list, k).row);
      });
    }
    return frames_type<camera>(film, {own.frames.data(), own.frames.size()}, film.picture());
  }
  /// The index of a film, which is made when it is needed first.
  template <class Camera>
  [[nodiscard]] const typename Camera::type::index_type& open(camera_state<Camera>& state, std::size_t file,
                                                              const std::string& path) const {
    if (const auto* const known = state.films.find(file)) [[likely]]
      return *known;
    using index_type = typename Camera::type::index_type;
    return state.films.get(file, [&] {
      return in_file(path, [&] {
        const auto id = static_cast<object_id>(file);
        auto made = std::make_unique<const index_type>(
            state.codec.read_index(opened_->session.view(id, 0, opened_->session.size(id))));
        opened_->session.confirm(id);
        typename Camera::type::scratch scratch;
        const image_size size = state.codec.film_of(*made, scratch).facts().size;
        const std::vector<std::uint64_t>& shape = opened_->places->tables.feature(Camera::name).shape;
        const std::uint64_t pair[] = {size.height, size.width};  // before the channels, or behind them
        if (std::ranges::search(shape, pair).empty())
          throw error(errc::shape, {"the film's frames are ", size.width, " x ", size.height,
                                    ", and meta/info.json says another shape of '", Camera::name, "'"});
        return made.release();
      });
    });
  }

  shared<const opened> opened_;
};

}  // namespace penstock::inline v0_1::detail
