// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/session_view.hpp>
#include <penstock/storage/sidecar.hpp>
#include <penstock/storage/threaded_reads.hpp>

#include "support/temp_dir.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock_test {

/// A storage of any type, chosen when the test runs: what reads through it is compiled once, and read from
/// every kind of store.
class stored {
  struct any_session {
    virtual ~any_session() = default;
    [[nodiscard]] virtual penstock::session_view view() = 0;
    virtual void read_many(std::span<const penstock::read_request>, penstock::read_listener) = 0;
    virtual void cancel() noexcept = 0;
    virtual void end() noexcept = 0;
  };
  struct any_storage {
    virtual ~any_storage() = default;
    [[nodiscard]] virtual std::span<const std::string> names() const = 0;
    [[nodiscard]] virtual bool local() const = 0;
    [[nodiscard]] virtual std::unique_ptr<any_session> connect() const = 0;
    [[nodiscard]] virtual stored sidecars(penstock::sidecar) const = 0;
  };
  template <class S>
  struct session_of final : any_session {
    explicit session_of(const S& where) : session(where.connect()) {
      if constexpr (!penstock::background_session<typename S::session>)
        threads.emplace(penstock::session_view(session), std::span<const std::string>(), std::size_t{4});
    }
    penstock::session_view view() override { return penstock::session_view(session); }
    void read_many(std::span<const penstock::read_request> requests,
                   penstock::read_listener listener) override {
      if constexpr (penstock::background_session<typename S::session>)
        session.read_many(requests, listener);
      else
        threads->read_many(requests, listener);
    }
    void cancel() noexcept override {
      if constexpr (penstock::background_session<typename S::session>)
        session.cancel();
      else
        threads->cancel();
    }
    void end() noexcept override {
      penstock::end_reads(session);
      if (threads) threads->cancel();
    }
    typename S::session session;
    std::optional<penstock::threaded_reads> threads;
  };
  template <class S>
  struct storage_of final : any_storage {
    explicit storage_of(S given) : where(std::move(given)) {}
    std::span<const std::string> names() const override { return where.names(); }
    bool local() const override { return penstock::is_local(where); }
    std::unique_ptr<any_session> connect() const override { return std::make_unique<session_of<S>>(where); }
    stored sidecars(penstock::sidecar which) const override {
      if constexpr (penstock::has_sidecars<S>()) {
        return stored(where.sidecars(which));
      } else {
        std::vector<std::string> paths;
        for (const std::string& one : where.names()) paths.push_back(which.of(one));
        return stored(S(std::move(paths)));
      }
    }
    S where;
  };

 public:
  class session {
   public:
    static constexpr penstock::session_traits traits = {.latency = true};
    explicit session(std::unique_ptr<any_session> made) : made_(std::move(made)) {}
    [[nodiscard]] std::uint64_t size(penstock::object_id id) const { return made_->view().size(id); }
    [[nodiscard]] penstock::object_version version(penstock::object_id id) const {
      return made_->view().version(id);
    }
    void read(penstock::object_id id, std::uint64_t offset, penstock::mutable_bytes into) const {
      made_->view().read(id, offset, into);
    }
    void will_need(penstock::object_id, std::uint64_t, std::uint64_t) const noexcept {}
    void confirm(penstock::object_id id) const { made_->view().confirm(id); }
    [[nodiscard]] bool tagged(penstock::object_id id) const { return made_->view().tagged(id); }
    void read_many(std::span<const penstock::read_request> requests, penstock::read_listener listener) const {
      made_->read_many(requests, listener);
    }
    void cancel() const noexcept { made_->cancel(); }
    void end_reads() const noexcept { made_->end(); }

   private:
    std::unique_ptr<any_session> made_;
  };

  template <class S>
    requires(!std::same_as<S, stored> && penstock::storage<S>)  // in this order, or Clang goes in a circle
  explicit stored(S where) : where_(std::make_shared<storage_of<S>>(std::move(where))) {}
  [[nodiscard]] std::span<const std::string> names() const { return where_->names(); }
  [[nodiscard]] bool local() const { return where_->local(); }
  [[nodiscard]] session connect() const { return session(where_->connect()); }
  [[nodiscard]] stored sidecars(penstock::sidecar which) const { return where_->sidecars(which); }

 private:
  std::shared_ptr<const any_storage> where_;
};
static_assert(penstock::has_sidecars<stored>() && penstock::background_session<stored::session>);

/// A server of objects that a test has for itself, so that it may be killed.
class store_server {
 public:
  virtual ~store_server() = default;
  /// Puts files there, each as an object that is named as the file is in its folder.
  virtual void put(const std::vector<std::string>& paths) = 0;
  /// Some of them, at a port that may be that of a proxy. A read is one request, and fails with it.
  [[nodiscard]] virtual stored open(const std::vector<std::string>& names, std::uint16_t port) const = 0;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  virtual void kill() = 0;
  virtual void start() = 0;
};

/// A kind of store in which tests find their files again.
struct store_kind {
  std::string name;
  bool (*is_here)();  ///< whether its server can be started
  /// objects with the bytes that these files have now
  stored (*open)(const std::vector<std::string>& paths);
  std::unique_ptr<store_server> (*serve)() = nullptr;  ///< nothing for local files
};

/// The kinds that this program knows: local files, and what other files of the program add.
///
/// A file of the program adds one by `const bool added = add_store({"http", is_here, open, serve});`.
inline std::vector<store_kind>& known_stores() {
  static std::vector<store_kind> all{
      {"file", [] { return true; },
       [](const std::vector<std::string>& paths) { return stored(penstock::file(paths)); }, nullptr}};
  return all;
}
inline bool add_store(store_kind one) {
  known_stores().push_back(std::move(one));
  return true;
}

/// The kinds that are here, as for GENERATE(from_range(stores_here())).
inline std::vector<const store_kind*> stores_here() {
  std::vector<const store_kind*> all;
  for (const store_kind& kind : known_stores())
    if (kind.is_here()) all.push_back(&kind);
  return all;
}
/// Calls `test` with the name of each kind that is here and a storage of these files in it.
template <class Test>
void in_each_store(const std::vector<std::string>& paths, Test&& test) {
  for (const store_kind& kind : known_stores())
    if (kind.is_here()) test(kind.name, kind.open(paths));
}
/// Calls `test` with the name of each kind that is here and a function that opens paths in it; to open them
/// again after the files have changed is to put them there again.
template <class Test>
void in_each_kind(Test&& test) {
  for (const store_kind& kind : known_stores())
    if (kind.is_here()) test(kind.name, kind.open);
}
/// Calls `test` with the name of each kind whose server is here, and one that holds these files.
template <class Test>
void with_each_server(const std::vector<std::string>& paths, Test&& test) {
  for (const store_kind& kind : known_stores()) {
    if (kind.serve == nullptr || !kind.is_here()) continue;
    const std::unique_ptr<store_server> server = kind.serve();
    server->put(paths);
    test(kind.name, *server);
  }
}
/// Of files with these names and bytes.
template <class Test>
void put_in_each_store(const std::vector<std::pair<std::string, std::string_view>>& files, Test&& test) {
  const temp_dir folder;
  std::vector<std::string> paths;
  for (const auto& [name, bytes] : files) {
    paths.push_back((folder / name).string());
    std::ofstream(paths.back(), std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  in_each_store(paths, std::forward<Test>(test));
}

}  // namespace penstock_test
