// Which model a namespace drafts with, and what becomes of it.
#include <mutex>
#include <utility>

#include "engine/storage.h"

namespace draftd {

const Model& Engine::Storage::model_of(const NamespaceState& home) const {
  return home.learned.model == nullptr ? *start : *home.learned.model;
}

Model* Engine::Storage::model_to_teach(NamespaceState& home, double now) {
  if (!limits.learning) return nullptr;
  if (home.learned.model == nullptr) exchange_model(home, std::make_unique<Model>(*start));
  home.learned.last_taught = now;
  return home.learned.model.get();
}

void Engine::Storage::teach(SessionEntry& entry, double now, bool alone) {
  if (!alone && limits.learning) {
    add({.verifier = entry.verifier,
         .request = entry.request,
         .epoch = entry.session.epoch(),
         .closed = nullptr,
         .name_space = entry.name_space,
         .outcome = std::make_unique<const Outcome>(std::exchange(entry.session.outcome(), {}))});
  } else if (Model* const model = model_to_teach(*namespaces[entry.name_space], now)) {
    entry.session.outcome().teach(*model);
  }
}

std::unique_ptr<Model> Engine::Storage::exchange_model(NamespaceState& home, std::unique_ptr<Model> model) {
  std::swap(home.learned.model, model);
  if (home.learned.model != nullptr) learned_bytes += home.learned.model->memory_size();
  if (model != nullptr) learned_bytes -= model->memory_size();
  return model;
}

std::vector<std::pair<std::uint32_t, std::uint64_t>> Engine::lessons() const {
  const Storage& s = *storage_;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> lessons;
  const std::scoped_lock guard(s.lock);
  for (std::uint32_t number = 0; number < s.namespaces.size(); ++number) {
    const Learned& learned = s.namespaces[number]->learned;
    if (learned.model != nullptr) lessons.emplace_back(number, learned.model->lessons());
  }
  return lessons;
}

std::vector<std::uint8_t> Engine::learned(std::uint32_t name_space) const {
  const Storage& s = *storage_;
  std::unique_ptr<const Model> copy;  // its bytes are made after the lock
  {
    const std::scoped_lock guard(s.lock);
    const Learned& learned = s.namespaces.at(name_space)->learned;
    if (learned.model != nullptr) copy = std::make_unique<const Model>(*learned.model);
  }
  return copy == nullptr ? std::vector<std::uint8_t>{} : copy->save();
}

void Engine::restore_learned(std::uint32_t name_space, std::span<const std::uint8_t> bytes, double now) {
  Storage& s = *storage_;
  std::unique_ptr<Model> model = Model::load(bytes);
  Retired retired;
  const std::scoped_lock guard(s.lock);
  NamespaceState& home = *s.namespaces.at(name_space);
  if (!s.limits.learning) return;
  retired.models.push_back(s.exchange_model(home, std::move(model)));
  home.learned.last_taught = now;
  s.enforce_memory_limit(retired);
}

void Engine::forget_learned(std::uint32_t name_space) {
  Storage& s = *storage_;
  std::unique_ptr<Model> forgotten;  // freed after the lock
  const std::scoped_lock guard(s.lock);
  forgotten = s.exchange_model(*s.namespaces.at(name_space), nullptr);
}

}  // namespace draftd
