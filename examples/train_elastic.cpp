// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Trains on shards of images (28 x 28, as pack_webdataset writes them) with any number of processes under
// MPI, and resumes on another number. Whichever processes are killed, and whenever, every global step has the
// same samples, and the final weights are the same, bit for bit.
//
//     mpirun -np 4 train_elastic --shards 'train-{000000..000059}.tar' --checkpoint model --epochs 3
//     mpirun -np 3 train_elastic ...             # resumes from the last saved step
//
// The model is ten perceptrons with integer weights: unlike sums of floating-point gradients, their sums do
// not depend on how the samples are divided.

#include "arguments.hpp"

#include <penstock/codec/integer.hpp>
#include <penstock/codec/npy.hpp>
#include <penstock/integration/mpi.hpp>
#include <penstock/order/shard.hpp>
#include <penstock/order/shuffle.hpp>
#include <penstock/run/run.hpp>
#include <penstock/source/webdataset.hpp>
#include <penstock/stage/batch.hpp>
#include <penstock/stage/decode.hpp>
#include <penstock/stage/fields.hpp>
#include <penstock/stage/workers.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ps = penstock;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t pixels = 784, classes = 10;

/// What a step adds to the weights, and how many samples were classified correctly: one sum over all
/// processes.
struct numbers {
  std::array<std::int64_t, classes * pixels> weights{};
  std::int64_t right = 0;
};

void look(const numbers& model, std::span<const std::uint8_t> image, std::size_t label, numbers& change) {
  std::array<std::int64_t, classes> scores{};
  for (std::size_t k = 0; k < classes; ++k)
    for (std::size_t i = 0; i < pixels; ++i) scores[k] += model.weights[k * pixels + i] * image[i];
  std::size_t best = 0;
  for (std::size_t k = 1; k < classes; ++k)
    if (scores[k] > scores[best]) best = k;
  if (best == label) {
    ++change.right;
    return;
  }
  for (std::size_t i = 0; i < pixels; ++i) {
    change.weights[label * pixels + i] += image[i];
    change.weights[best * pixels + i] -= image[i];
  }
}

/// A checkpoint is the loader's state, one line, and the model's numbers.
void save(const std::string& path, const ps::state& where, const numbers& model) {
  const std::string beside = path + ".partial";
  {
    std::ofstream out(beside, std::ios::binary);
    out << to_string(where) << '\n';
    out.write(reinterpret_cast<const char*>(&model), sizeof model);
    out.flush();
    if (!out) throw std::runtime_error("cannot write " + beside);
  }
  fs::rename(beside, path);  // a reader sees the old file or the new one, complete
}

std::string read_checkpoint(const std::string& path) {
  if (!fs::exists(path)) return "";
  std::ifstream in(path, std::ios::binary);
  std::string all{std::istreambuf_iterator<char>(in), {}};
  if (!in || all.size() < sizeof(numbers) || all.find('\n') + 1 + sizeof(numbers) != all.size())
    throw std::runtime_error("the checkpoint " + path +
                             " was cut, or is of another model; remove it to begin anew");
  return all;
}

/// One line for each step: epoch, step, the process and the keys that it consumed. The test reads it after it
/// killed the processes, so each line is written in one piece.
class record {
 public:
  record(const std::string& path, const ps::world& here) {  // `here` as the plan has it
    if (path.empty()) return;
    const std::string mine = path + "." + std::to_string(here.rank) + "-of-" + std::to_string(here.size) +
                             "." + std::to_string(here.replica);
    file_ = std::fopen(mine.c_str(), "ae");
    if (file_ == nullptr) throw std::runtime_error("cannot write " + mine);
  }
  record(const record&) = delete;
  record& operator=(const record&) = delete;
  ~record() {
    if (file_ != nullptr) std::fclose(file_);
  }
  template <class Batch>
  void add(const Batch& batch) const {
    if (file_ == nullptr) return;
    std::string line = std::to_string(batch.epoch()) + " " + std::to_string(batch.step());
    for (const std::string& key : batch.keys()) line += " " + key;
    line += "\n";
    if (std::fwrite(line.data(), 1, line.size(), file_) != line.size() || std::fflush(file_) != 0)
      throw std::runtime_error("cannot write the record");
  }

 private:
  std::FILE* file_ = nullptr;
};

void train(arguments& given) {
  const std::string shards = given.text("shards"), checkpoint = given.text("checkpoint");
  const std::uint64_t epochs = given.number("epochs", 1), global = given.number("global-batch", 100);
  const std::uint64_t shards_ahead = given.number("window", 8), copies = given.number("replicate", 1);
  const auto threads = static_cast<unsigned>(given.number("workers", 1, max_workers));
  const std::string record_path = given.text("record", "");
  const std::chrono::milliseconds step_takes(given.number("step-ms", 0));
  given.done();

  MPI_Comm all = MPI_COMM_WORLD;
  // One process lists the shards and reads their indexes; all get the result.
  const ps::world here = ps::mpi::world_of(all);
  const ps::manifest listed = ps::mpi::on_first_rank(all, [&] { return ps::webdataset(shards).manifest(); });
  const auto loader = ps::webdataset(listed) |
                      ps::decode<ps::field<"npy", ps::npy<std::uint8_t>>, ps::field<"cls", ps::integer>> |
                      ps::shuffle(ps::seed(7), ps::window(shards_ahead)) |
                      ps::shard(here, ps::replicate(copies)) | ps::global_batch(global) |
                      ps::workers(threads);
  ps::mpi::agree(all, loader);

  numbers model;
  const std::string saved = ps::mpi::on_first_rank(all, [&] { return read_checkpoint(checkpoint); });
  auto run = ps::mpi::together(all, [&] {
    if (saved.empty()) return loader.open();
    const std::size_t line = saved.find('\n');
    std::memcpy(&model, saved.data() + line + 1, sizeof model);
    return loader.open(ps::state_from_string(saved.substr(0, line)));
  });
  if (here.rank == 0) {
    const ps::state at = run.state();
    std::printf("%llu processes begin at epoch %llu step %llu\n", static_cast<unsigned long long>(here.size),
                static_cast<unsigned long long>(at.epoch), static_cast<unsigned long long>(at.step));
    std::fflush(stdout);
  }

  const ps::world part = ps::world_of(loader);
  std::optional<record> consumed;
  ps::mpi::together(all, [&] { consumed.emplace(record_path, part); });
  static_cast<void>(run.epochs(epochs));  // the limit of next()
  while (true) {
    auto batch = run.next();
    // If one process fails alone, the others would wait for its part of the sum.
    ps::mpi::stop_together(all, batch.failure);
    if (!batch) break;
    numbers change;
    ps::mpi::together(all, [&] {
      const auto images = get<"npy">(*batch);
      const auto labels = get<"cls">(*batch);
      for (std::size_t i = 0; i < batch->size(); ++i) {
        if (images[i].size() != pixels || labels[i] < 0 || labels[i] >= static_cast<std::int64_t>(classes))
          throw std::runtime_error("a sample is no image of 28 x 28 with a label below 10");
        look(model, images[i].values(), static_cast<std::size_t>(labels[i]), change);
      }
      consumed->add(*batch);
    });
    if (part.replica != 0) change = {};  // replicas have the same samples, which count once
    std::this_thread::sleep_for(step_takes);
    MPI_Allreduce(MPI_IN_PLACE, &change, sizeof change / sizeof(std::int64_t), MPI_INT64_T, MPI_SUM, all);
    for (std::size_t i = 0; i < model.weights.size(); ++i) model.weights[i] += change.weights[i];
    model.right += change.right;
    const auto where = ps::mpi::gather_states(all, run.state());
    ps::mpi::together(all, [&] {
      if (where) save(checkpoint, *where, model);
    });
    if (here.rank == 0) {
      std::printf("epoch %llu step %llu: %lld of the global batch were right\n",
                  static_cast<unsigned long long>(batch->epoch()),
                  static_cast<unsigned long long>(batch->step()), static_cast<long long>(change.right));
      std::fflush(stdout);
    }
  }
  if (here.rank == 0) std::printf("done: %lld right in all\n", static_cast<long long>(model.right));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* usage =
      "train_elastic --shards PATTERN --checkpoint FILE [--epochs N] [--global-batch G] "
      "[--replicate R] [--window SHARDS] [--workers N] [--record FILE] [--step-ms MS]";
  if (asked_for_help(argc, argv, usage)) return 0;
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    arguments given(argc, argv, usage);
    train(given);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_elastic, process %d: %s\n", rank, e.what());
    std::fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
