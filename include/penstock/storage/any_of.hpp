// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/detail/url_scheme.hpp>
#include <penstock/storage/session_adaptor.hpp>
#include <penstock/storage/session_report.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail {

/// Whether `any_of` can choose a storage: it says which URLs are its own, and is made of one.
template <class S>
[[nodiscard]] constexpr bool takes_urls() noexcept {
  return storage<S> && requires { std::span<const std::string_view>(S::schemes); } &&
         std::constructible_from<S, const std::string&>;
}
template <class S>
[[nodiscard]] constexpr std::span<const std::string_view> schemes_of() noexcept {
  if constexpr (takes_urls<S>())
    return S::schemes;
  else
    return {};
}
/// Whether each scheme belongs to one storage.
template <class... Storages>
[[nodiscard]] constexpr bool distinct_schemes() noexcept {
  const std::span<const std::string_view> lists[] = {schemes_of<Storages>()...};
  for (std::size_t a = 0; a < sizeof...(Storages); ++a)
    for (std::size_t b = 0; b < a; ++b)
      for (const std::string_view one : lists[a])
        for (const std::string_view other : lists[b])
          if (one == other) return false;
  return true;
}

}  // namespace detail

/// One of several storages, chosen at run time by the scheme of a URL. The list is closed, so that reads are
/// dispatched by an index, once per request, and the compiler sees every storage.
///
///     std::ofstream("one.bin") << "four";
///     const any_of<file> by_path("one.bin");
///     const any_of<file> by_url(std::vector<std::string>{"one.bin"});
///     const std::uint64_t four = by_path.connect().size(0);
///
/// A program that takes its URLs from a configuration writes `webdataset(any_of<file, http, s3>(url))`.
/// In: storages that say which URLs are theirs, no two with the same scheme, as in
/// `static constexpr std::string_view schemes[] = {"http", "https"}`, in lower case; "file" is also for texts
/// that are no URLs. They are made of a URL or a pattern of URLs, those whose names are paths of the path in
/// a file:// URL, and, if they can, of a `std::vector<std::string>`, taken literally.
/// And a URL or pattern, whose text before `://` is the scheme; any other text is a path, for the storage
/// with the scheme "file". Or a list, whose URLs must have one scheme. Or one of the storages itself, with
/// options of its own. A path in a file:// URL is taken as it is, without percent-encoding.
/// The names, the bytes, the errors and the guarantees are those of the storage that was chosen. What its
/// session can do depends on the list: it reads in the background if one of them does (the others do it with
/// eight threads), has latency if one of them has, and shows in place what the chosen one shows, every object
/// only if all of them do. Hints for the processor's cache are for lists of storages that all take them.
/// Errors: errc::argument for a scheme that none of the storages has, with the header and the component to
/// add, and for URLs of different schemes in one list. No message shows more of a URL than its scheme.
/// Threads: as for the storages.
template <class... Storages>
class any_of {
  static_assert(sizeof...(Storages) != 0,
                "any_of<...> needs the storages to choose from: any_of<file, http>(url)");
  static_assert(
      (detail::takes_urls<Storages>() && ...),
      "each storage of any_of<...> needs static constexpr std::string_view schemes[], which says which "
      "URLs are its own, and a constructor from a URL");
  static_assert(
      detail::distinct_schemes<Storages...>(),
      "two storages of this any_of<...> have the same scheme, so a URL would not say which is meant");

  using chosen = std::variant<Storages...>;
  template <class S>
  struct opened {
    explicit opened(const S& where) : session(where.connect()) {}  // sessions need not be movable
    typename S::session session;
  };
  using opened_one = std::variant<std::monostate, opened<Storages>...>;

  /// Calls `f` with the alternative that a variant has; the first `Skip` are never there.
  template <std::size_t Skip, class Variant, class F>
  static decltype(auto) with(Variant& one, F&& f) {
    if constexpr (Skip + 1 == std::variant_size_v<std::remove_const_t<Variant>>) {
      return f(*std::get_if<Skip>(&one));
    } else {
      if (one.index() == Skip) return f(*std::get_if<Skip>(&one));
      return with<Skip + 1>(one, std::forward<F>(f));
    }
  }

  template <class S>
  static constexpr bool reads_ahead = background_session<typename S::session>;
  struct state {
    explicit state(const chosen& given) : where(given) {
      with<0>(where, [this]<class S>(const S& storage) {
        auto& made = session.template emplace<opened<S>>(storage);
        if constexpr ((reads_ahead<Storages> || ...) && !reads_ahead<S>)
          threads.emplace(session_view(made.session), storage.names(), std::size_t{8});
      });
    }

    chosen where;
    opened_one session;
    std::optional<threaded_reads> threads;  // for a session that does not read in the background
  };

 public:
  static constexpr bool names_are_paths = (is_local<Storages>() && ...);

  /// What a run reads through; see `session_adaptor`.
  class session : public session_adaptor<session, typename Storages::session...> {
    using chosen_session = session_adaptor<session, typename Storages::session...>;

   public:
    void read_many(std::span<const read_request> requests, read_listener listener) const noexcept
      requires((reads_ahead<Storages> || ...))
    {
      if (state_->threads)
        state_->threads->read_many(requests, listener);
      else
        chosen_session::read_many(requests, listener);
    }
    void cancel() const noexcept {
      if (state_->threads) state_->threads->cancel();
      chosen_session::cancel();
    }
    void end_reads() const noexcept {
      if (state_->threads) state_->threads->cancel();
      chosen_session::end_reads();
    }

    /// That of the chosen one.
    [[nodiscard]] session_report report() const {
      session_report all = chosen_session::report();
      all.names = names_of(state_->where);
      return all;
    }
    [[nodiscard]] session_report limits() const {
      return inside([](auto& s) { return limits_of(s); });
    }

   private:
    friend any_of;
    friend chosen_session;
    explicit session(const chosen& where) : state_(std::make_unique<state>(where)) {}

    template <class F>
    decltype(auto) inside(F&& f) const {
      return with<1>(state_->session, [&](auto& one) -> decltype(auto) { return f(one.session); });
    }

    std::unique_ptr<state> state_;
  };

  explicit any_of(std::string_view url)
      : storage_(of_scheme<0>(detail::scheme_of(url), [url]<class S>(std::in_place_type_t<S> which) {
          return chosen(which, argument<S>(url));
        })) {}
  explicit any_of(std::vector<std::string> urls)
      : storage_(of_scheme<0>(detail::common_scheme(urls), [&urls]<class S>(std::in_place_type_t<S> which) {
          if constexpr (std::constructible_from<S, std::vector<std::string>>) {
            for (std::string& one : urls) one = argument<S>(one);
            return chosen(which, std::move(urls));
          } else {
            if (urls.size() != 1)
              throw error(errc::argument, {"the storage for ", detail::scheme_of(urls[0]),
                                           " takes one URL, not a list; write one with braces"});
            return chosen(which, argument<S>(urls[0]));
          }
        })) {}
  any_of(std::initializer_list<const char*> urls)
      : any_of(std::vector<std::string>(urls.begin(), urls.end())) {}
  /// One of the storages as it is.
  template <class S>
    requires(std::same_as<S, Storages> || ...)
  explicit any_of(S where) : storage_(std::move(where)) {}

  [[nodiscard]] std::span<const std::string> names() const { return names_of(storage_); }
  [[nodiscard]] session connect() const { return session(storage_); }
  /// See `has_sidecars`. Local files have none: what belongs to them is found by their paths.
  [[nodiscard]] any_of sidecars(sidecar which) const
    requires((has_sidecars<Storages>() || is_local<Storages>()) && ...)
  {
    return with<0>(storage_, [&](const auto& s) -> any_of {
      if constexpr (has_sidecars<std::remove_cvref_t<decltype(s)>>())
        return any_of(s.sidecars(which));
      else
        throw error(errc::argument, "the files beside local files are found by their paths");
    });
  }
  /// See `renaming_storage`: of the storage that was chosen.
  [[nodiscard]] any_of with_names(std::vector<std::string> names) const
    requires(renaming_storage<Storages> && ...)
  {
    return with<0>(storage_, [&](const auto& s) { return any_of(s.with_names(std::move(names))); });
  }
  /// Whether the names are paths in the local file system; see `is_local`.
  [[nodiscard]] bool local() const {
    return with<0>(storage_, [](const auto& s) -> bool { return is_local(s); });
  }
  /// What the chosen storage says of itself.
  [[nodiscard]] std::string describe() const {
    return with<0>(storage_, [](const auto& s) -> std::string {
      if constexpr (requires {
                      { s.describe() } -> std::convertible_to<std::string>;
                    })
        return s.describe();
      else
        return detail::text({"any_of(", s.names().size(), " objects)"});
    });
  }

 private:
  [[nodiscard]] static std::span<const std::string> names_of(const chosen& where) {
    return with<0>(where, [](const auto& s) -> std::span<const std::string> { return s.names(); });
  }
  template <class S>
  [[nodiscard]] static std::string argument(std::string_view url) {
    return is_local<S>() ? detail::path_of(url) : detail::with_lower_scheme(url);
  }
  /// What `make` returns for the storage with this scheme.
  template <std::size_t I, class Make>
  [[nodiscard]] static chosen of_scheme(const std::string& scheme, Make&& make) {
    if constexpr (I == sizeof...(Storages)) {
      std::vector<std::string_view> known;
      (known.insert(known.end(), detail::schemes_of<Storages>().begin(),
                    detail::schemes_of<Storages>().end()),
       ...);
      detail::refuse_scheme(scheme, known);
    } else {
      using type = std::variant_alternative_t<I, chosen>;
      for (const std::string_view one : detail::schemes_of<type>())
        if (one == scheme) return make(std::in_place_type<type>);
      return of_scheme<I + 1>(scheme, make);
    }
  }

  chosen storage_;
};

}  // namespace penstock::inline v0_1
