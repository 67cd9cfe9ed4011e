// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Copies objects from a storage to a folder: many at once, each in parts that are in flight together.
//
//     copy --from 'https://data.example.com/train-{0000..0127}.tar' --to /data/train
//
// Kill it at any moment and start it again: it goes on after the last whole part, and ends with the same
// bytes. Nothing half written is ever under its own name. Each part is hashed as it arrives, and read back
// before its file gets its name. An object that is replaced while it is copied is an error; one that was
// replaced since a copy was finished or begun is copied anew.
//
// copy_sink.hpp writes the files; another class there can write to something else.

#include "arguments.hpp"
#include "copy_sink.hpp"

#include <penstock/core/error.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ps = penstock;

namespace {

using anywhere = ps::any_of<ps::file, ps::http>;

/// What all threads share.
struct copying {
  copying(const anywhere& from, const std::string& to, std::uint64_t part, std::size_t parts)
      : session(from.connect()), folder(to), part_size(part), ahead(parts) {}

  anywhere::session session;
  copy_folder folder;
  std::uint64_t part_size;
  std::size_t ahead;
  std::vector<std::string> names;  // where they go to

  std::atomic<std::size_t> next{0}, objects{0}, resumed{0};
  std::atomic<std::uint64_t> bytes{0}, kept{0};
  std::mutex asking;  // one thread at a time may ask a session for many reads
  std::mutex lock;
  std::condition_variable ended;
  std::exception_ptr failed;
  std::size_t running = 0;

  void fail(std::exception_ptr why) {
    {
      const std::scoped_lock held(lock);
      if (!failed) failed = std::move(why);
    }
    next = names.size();
    ps::end_reads(session);
  }
};

/// The part of a name that is its file's.
[[nodiscard]] std::string file_name(std::string_view name) {
  const std::size_t query = name.find("?...");
  if (query != std::string_view::npos) name = name.substr(0, query);
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  if (name.empty() || name == "." || name == ".." || name.starts_with(".penstock"))
    throw std::runtime_error("an object needs a name to be copied to, and '" + std::string(name) +
                             "' is none");
  return std::string(name);
}

/// The parts of one object that are on their way, in order.
class parts_ahead {
 public:
  parts_ahead(copying& all, ps::object_id id, const copied_object& what, std::uint64_t first)
      : all_(all), id_(id), what_(what), next_(first), places_(std::max<std::size_t>(1, all.ahead)) {
    for (std::uint64_t part = first; part < first + places_.size() && part < what.parts(); ++part) ask(part);
  }
  ~parts_ahead() {  // they write to the memory here
    std::unique_lock held(lock_);
    changed_.wait(held, [this] { return in_flight_ == 0; });
  }
  parts_ahead(const parts_ahead&) = delete;
  parts_ahead& operator=(const parts_ahead&) = delete;

  /// The bytes of the next part, until the next call.
  [[nodiscard]] ps::bytes_view take() {
    if (taken_) ask(next_++ + places_.size());
    taken_ = true;
    place& mine = at(next_);
    std::unique_lock held(lock_);
    changed_.wait(held, [&] { return mine.over; });
    if (mine.failed) std::rethrow_exception(mine.failed);
    return mine.bytes.view();
  }

 private:
  struct place {
    ps::buffer bytes;
    std::exception_ptr failed;
    bool over = false;
  };
  [[nodiscard]] place& at(std::uint64_t part) { return places_[part % places_.size()]; }

  void ask(std::uint64_t part) {
    if (part >= what_.parts()) return;
    place& mine = at(part);
    mine.bytes.resize_for_overwrite(what_.size_of(part));
    {
      const std::scoped_lock held(lock_);
      mine.over = false;
      mine.failed = nullptr;
      ++in_flight_;
    }
    const ps::read_request request{id_, part * what_.part_size, mine.bytes.span(), part};
    const std::scoped_lock held(all_.asking);
    all_.session.read_many({&request, 1},
                           {this, [](void* self, std::uint64_t tag, std::exception_ptr failed) noexcept {
                              static_cast<parts_ahead*>(self)->arrived(tag, std::move(failed));
                            }});
  }
  void arrived(std::uint64_t part, std::exception_ptr failed) noexcept {
    const std::scoped_lock held(lock_);
    at(part).failed = std::move(failed);
    at(part).over = true;
    --in_flight_;
    changed_.notify_all();  // under the lock: the waiter may end the object
  }

  copying& all_;
  ps::object_id id_;
  const copied_object& what_;
  std::uint64_t next_;
  bool taken_ = false;
  std::mutex lock_;
  std::condition_variable changed_;
  std::size_t in_flight_ = 0;
  std::vector<place> places_;
};

void copy_one(copying& all, ps::object_id id, sink& to) {
  const copied_object what{all.names[id], all.session.signature(id), all.part_size};
  const auto there = to.open(what);
  if (!there) {
    all.kept += what.signature.size;
    ++all.objects;
    return;
  }
  all.kept += std::min(*there * what.part_size, what.signature.size);
  if (*there != 0) ++all.resumed;
  try {
    parts_ahead parts(all, id, what, *there);
    for (std::uint64_t part = *there; part < what.parts(); ++part) {
      const ps::bytes_view bytes = parts.take();
      to.write(bytes);
      all.bytes += bytes.size();
    }
    to.finish();
  } catch (...) {
    to.abort();
    throw;
  }
  ++all.objects;
}

void work(copying& all) {
  try {
    folder_sink to(all.folder);
    for (std::size_t i = all.next++; i < all.names.size(); i = all.next++)
      copy_one(all, static_cast<ps::object_id>(i), to);
  } catch (...) {
    all.fail(std::current_exception());
  }
  const std::scoped_lock held(all.lock);
  --all.running;
  all.ended.notify_all();
}

void copy(arguments& given) {
  const anywhere from(given.text("from"));
  const std::string to = given.text("to");
  const std::uint64_t parallel = given.number("parallel", 8, most_workers);
  const std::uint64_t part_size = given.number("part-size", 8'388'608, std::uint64_t{1} << 30);
  const std::uint64_t ahead = given.number("ahead", 2, 1024), every = given.number("progress", 2, 3600);
  given.done();
  if (parallel == 0 || ahead == 0 || part_size == 0)
    throw std::runtime_error("--parallel, --ahead and --part-size are at least 1");
  copying all(from, to, part_size, ahead);
  std::set<std::string> seen;
  for (const std::string& name : from.names()) {
    all.names.push_back(file_name(name));
    if (!seen.insert(all.names.back()).second)
      throw std::runtime_error("two objects would be " + all.names.back() + " in " + to +
                               "; copy them to different folders");
  }

  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  all.running = std::min<std::size_t>(parallel, all.names.size());
  for (std::size_t i = all.running; i > 0; --i) threads.emplace_back([&all] { work(all); });
  const auto say = [&](const char* what) {
    std::printf("%s: %s%zu of %zu objects, %.1f MB copied, %.1f MB were there", to.c_str(), what,
                all.objects.load(), all.names.size(), static_cast<double>(all.bytes.load()) / 1e6,
                static_cast<double>(all.kept.load()) / 1e6);
  };
  {
    std::unique_lock held(all.lock);
    const auto over = [&all] { return all.running == 0; };
    while (!all.ended.wait_for(held, std::chrono::seconds(every == 0 ? 3600 : every), over)) {
      if (every == 0) continue;
      say("");
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  threads.clear();
  if (all.failed) std::rethrow_exception(all.failed);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  say(all.resumed != 0 ? "continuing what was begun, " : "");
  std::printf(", %.1f MB/s\n", static_cast<double>(all.bytes.load()) / 1e6 / std::max(seconds, 1e-9));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    constexpr const char* usage =
        "copy --from URL|PATTERN --to DIR [--parallel 8] [--ahead 2] [--part-size 8388608] [--progress 2]\n"
        "Copies objects of http(s):// URLs, or files, to a folder: --parallel of them at once, each in parts "
        "of "
        "--part-size bytes of which --ahead are in flight. Every --progress seconds it says how far it is; "
        "0: "
        "never. Started again after it was killed, it goes on after the last whole part.";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    copy(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "copy: %s\n", e.what());
    return 1;
  }
}
