// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/temp_dir.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace penstock_test {

/// A folder that says what Linux's /sys says on a machine whose nodes have these processors.
class made_up_nodes {
 public:
  explicit made_up_nodes(const std::vector<std::string>& processors) {
    const std::string nodes = "devices/system/node/";
    for (std::size_t i = 0; i < processors.size(); ++i)
      write(nodes + "node" + std::to_string(i) + "/cpulist", processors[i] + "\n");
    write(nodes + "online",
          processors.size() == 1 ? "0\n" : "0-" + std::to_string(processors.size() - 1) + "\n");
  }
  /// Adds a PCI device with the number of its node, as the file has it.
  const made_up_nodes& device(const std::string& address, const std::string& node) const {
    write("bus/pci/devices/" + address + "/numa_node", node);
    return *this;
  }
  [[nodiscard]] std::string sys() const { return dir_.path().string(); }

 private:
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = dir_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  temp_dir dir_;
};

}  // namespace penstock_test
