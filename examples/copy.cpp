// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Copies objects from any storage to a folder or into S3: many at once, each in parts that are in flight
// together.
//
//     copy --from 'https://data.example.com/train-{0000..0127}.tar' --to /data/train
//     copy --from s3://bucket/train/ --to /data/train
//     copy --from '/data/train/train-*.tar' --to s3://bucket/train
//
// Kill it at any moment and start it again. In a folder it goes on after the last whole part; in S3, objects
// that are finished stay and the others are sent again. Nothing half written is ever under its own name. Each
// part is hashed as it arrives, and what was written is read back and compared: a file before it gets its
// name, an object before it counts as finished. An object that is replaced while it is copied is an error;
// one that was replaced since a copy was finished or begun is copied anew.
//
// copy_parts.hpp reads; copy_to_folder.hpp and copy_to_s3.hpp write. A program that needs no S3 takes it out
// of `anywhere`, and leaves the last one out.

#include "arguments.hpp"
#include "copy_parts.hpp"
#include "copy_sink.hpp"
#include "copy_to_folder.hpp"
#include "copy_to_s3.hpp"

#include <penstock/core/error.hpp>
#include <penstock/storage/any_of.hpp>
#include <penstock/storage/file.hpp>
#include <penstock/storage/http.hpp>
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3_writer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ps = penstock;

namespace {

using anywhere = ps::any_of<ps::file, ps::http, ps::s3>;

/// Where the objects go to.
class target {
 public:
  target(const std::string& to, const std::vector<std::string>& names) {
    if (to.starts_with("s3://"))
      prefix_.emplace(to, names);
    else
      folder_.emplace(to);
  }
  /// For one thread.
  [[nodiscard]] std::unique_ptr<sink> connect(std::uint64_t part_size, std::size_t ahead) {
    if (prefix_) return std::make_unique<s3_sink>(*prefix_, part_size, ahead);
    return std::make_unique<folder_sink>(*folder_);
  }

 private:
  std::optional<copy_folder> folder_;
  std::optional<copy_prefix> prefix_;
};

/// What all threads share.
struct copying {
  copying(const anywhere& from, const std::string& where, std::vector<std::string> called, std::uint64_t part,
          std::size_t parts)
      : session(from.connect()), names(std::move(called)), to(where, names), part_size(part), ahead(parts) {}

  anywhere::session session;
  std::vector<std::string> names;  // where they go to
  target to;
  std::uint64_t part_size;
  std::size_t ahead;

  std::atomic<std::size_t> next{0}, objects{0}, resumed{0};
  std::atomic<std::uint64_t> bytes{0}, kept{0};
  std::mutex asking;
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

void copy_one(copying& all, std::size_t number, sink& to) {
  const auto id = static_cast<ps::object_id>(number);
  const copied_object what{number, all.names[number], all.session.version(id), all.part_size};
  const auto there = to.open(what);
  if (!there) {
    all.kept += what.version.size;
    ++all.objects;
    return;
  }
  all.kept += std::min(*there * what.part_size, what.version.size);
  if (*there != 0) ++all.resumed;
  try {
    parts_ahead parts(all.session, all.asking, id, what, *there, all.ahead);
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
    const auto to = all.to.connect(all.part_size, all.ahead);
    for (std::size_t i = all.next++; i < all.names.size(); i = all.next++) copy_one(all, i, *to);
  } catch (...) {
    all.fail(std::current_exception());
  }
  const std::scoped_lock held(all.lock);
  --all.running;
  all.ended.notify_all();
}

/// What is copied: one URL or pattern, all that begins with an s3://bucket/prefix/, or a list of URLs.
anywhere source_of(arguments& given) {
  std::vector<std::string> urls;
  if (given.has("list")) {
    const std::string path = given.text("list");
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) urls.push_back(line);
    if (urls.empty()) throw std::runtime_error("there is no URL in " + path);
    return anywhere(std::move(urls));
  }
  if (!given.has("from")) return anywhere(given.text("from"));  // says what is missing
  urls = given.texts("from");
  if (urls.size() > 1) return anywhere(std::move(urls));
  if (urls[0].starts_with("s3://") && urls[0].ends_with('/')) {
    std::vector<std::string> found = ps::s3::list(urls[0]);
    if (found.empty()) throw std::runtime_error("there is no object " + urls[0] + "...");
    return anywhere(ps::s3(std::move(found)));
  }
  return anywhere(urls[0]);
}

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
[[nodiscard]] std::vector<std::string> file_names(const anywhere& from, const std::string& to) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const std::string& name : from.names()) {
    names.push_back(file_name(name));
    if (!seen.insert(names.back()).second)
      throw std::runtime_error("two objects would be " + names.back() + " in " + to +
                               "; copy them to different folders");
  }
  return names;
}

void copy(arguments& given) {
  const anywhere from = source_of(given);
  const std::string to = given.text("to");
  const std::uint64_t parallel = given.number("parallel", 8, max_workers);
  const std::uint64_t part_size = given.number("part-size", 8'388'608, std::uint64_t{1} << 30);
  const std::uint64_t ahead = given.number("ahead", 2, 1024), every = given.number("progress", 2, 3600);
  given.done();
  if (parallel == 0 || ahead == 0 || part_size == 0)
    throw std::runtime_error("--parallel, --ahead and --part-size are at least 1");
  copying all(from, to, file_names(from, to), part_size, ahead);

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
        "copy --from URL|PATTERN --to DIR|s3://BUCKET/PREFIX [--parallel 8] [--ahead 2] [--part-size "
        "8388608] "
        "[--progress 2]\n"
        "Copies files, objects of http(s):// URLs and of s3:// to a folder or into S3: --parallel of them at "
        "once, each in parts of --part-size bytes of which --ahead are in flight. --from s3://BUCKET/PREFIX/ "
        "is all that begins so; several --from, or --list FILE with a URL in each line, are taken as they "
        "are. Where S3 is, and as whom it is asked, is in the environment, as for the tools of AWS. Every "
        "--progress seconds it says how far it is; 0: never. Started again after it was killed, it goes on.";
    if (asked_for_help(argc, argv, usage)) return 0;
    arguments given(argc, argv, usage);
    copy(given);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "copy: %s\n", e.what());
    return 1;
  }
}
