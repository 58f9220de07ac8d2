// What the user's settings mean to the parts below, which know nothing of the config. Requires
// settings that config::load() has resolved.
#pragma once

#include "actors/trainer.hpp"
#include "config/settings.hpp"
#include "model/data/dataset.hpp"
#include "model/description.hpp"

namespace troupe::actors {

model::description description_from(const config::settings& s);
trainer_settings trainer_settings_from(const config::settings& s);
model::data::dataset_options training_data_from(const config::settings& s);
// The windows of validation.path, in order. Requires validation.enable.
model::data::dataset_options validation_data_from(const config::settings& s);
// The device that the settings ask for; threads 0 is all cores that this process may use.
std::unique_ptr<compute::executor> executor_from(const config::settings& s);

}  // namespace troupe::actors
