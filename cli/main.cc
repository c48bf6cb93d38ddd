#include <utility>

#include "command.h"

int main(int argc, char** argv) {
  using namespace forebay::cli;  // NOLINT(google-build-using-namespace)
  CommandList commands;
  commands.push_back(MakeBench());
  commands.push_back(MakeCat());
  commands.push_back(MakeCp());
  commands.push_back(MakeDemo());
  commands.push_back(MakeDoctor());
  commands.push_back(MakeFrames());
  commands.push_back(MakeIndex());
  commands.push_back(MakeInspect());
  commands.push_back(MakeLs());
  commands.push_back(MakeMerge());
  commands.push_back(MakeOrder());
  commands.push_back(MakePack());
  commands.push_back(MakeStat());
  return RunApp(argc, argv, std::move(commands));
}
