// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/run/state.hpp>

#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

/// One file with where a run stands and what the model has learned: either of the same step, or not there.
class checkpoint_file {
 public:
  explicit checkpoint_file(std::filesystem::path path) : path_(std::move(path)) {}

  /// Replaces the file; a process that is killed leaves the old one.
  template <class Model>
  void save(const Model& model, const penstock::state& where) const {
    const std::filesystem::path beside = path_.string() + ".partial";
    std::ofstream file(beside, std::ios::binary);
    file << to_string(where) << '\n';
    model.save(file);
    file.close();
    if (!file) throw std::runtime_error("cannot write " + beside.string());
    std::filesystem::rename(beside, path_);
  }
  /// Nothing if there is no file.
  template <class Model>
  [[nodiscard]] std::optional<penstock::state> load(Model& model) const {
    std::ifstream file(path_, std::ios::binary);
    if (!file) return std::nullopt;
    std::string state;
    std::getline(file, state);
    model.load(file);
    if (!file || file.peek() != std::ifstream::traits_type::eof())
      throw std::runtime_error(path_.string() + " is not a checkpoint of this model; delete it");
    return penstock::state_from_string(state);
  }

 private:
  std::filesystem::path path_;
};
