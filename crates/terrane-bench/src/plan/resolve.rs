//! From the text of a plan to the plan: defaults laid over each other, lists multiplied, names made.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Direction;
use crate::error::{Error, Result};
use crate::generate::catalogue;
use crate::plan::file::{
    DataText, EngineText, OneOrMany, OneOrText, PlanFile, RunText, ScenarioText, StepText,
};
use crate::plan::text::{duration_seconds, size};
use crate::plan::{Data, Distribution, EngineChoice, Plan, Run, Scenario, Step, Until, ValueSize};

impl PlanFile {
    /// The plan, every value resolved and checked.
    ///
    /// # Errors
    /// `Plan`, naming the wrong value and the accepted ones.
    pub fn resolve(&self) -> Result<Plan> {
        let engines = self.engines.iter().map(EngineText::resolve).collect::<Result<Vec<_>>>()?;
        let first =
            engines.first().ok_or_else(|| Error::plan("the plan names no engine: engines = [...]"))?;
        let plan = Plan {
            name: self.name.clone().unwrap_or_else(|| "bench".to_owned()),
            seed: self.seed.unwrap_or(1),
            repetitions: self.repetitions.unwrap_or(1),
            baseline: self.baseline.clone().unwrap_or_else(|| first.label.clone()),
            scenarios: self.scenarios()?,
            engines,
        };
        super::check::check(&plan)?;
        Ok(plan)
    }

    fn scenarios(&self) -> Result<Vec<Scenario>> {
        self.scenario
            .iter()
            .enumerate()
            .map(|(index, scenario)| {
                let name = scenario.name.clone().unwrap_or_else(|| format!("scenario {}", index + 1));
                let named = |error: Error| match error {
                    Error::Plan(message) => Error::plan(format!("scenario {name:?}: {message}")),
                    other => other,
                };
                self.scenario(scenario, &name).map_err(named)
            })
            .collect()
    }

    fn scenario(&self, text: &ScenarioText, name: &str) -> Result<Scenario> {
        let data = text.data.over(&self.data).resolve(text.steps.first().and_then(StepText::workload))?;
        let database = text.database.over(&self.database);
        let run = text.run.over(&self.run);
        let memory_bytes = memory(database.memory.as_deref().unwrap_or("256MiB"), &data)?;
        let mut names = BTreeSet::new();
        let mut steps = Vec::new();
        for step in &text.steps {
            for step in step.resolve(&run, &data)? {
                steps.push(rename(step, &mut names));
            }
        }
        let limit = database.memory_limit.as_deref().map(|text| memory(text, &data)).transpose()?;
        Ok(Scenario {
            name: name.to_owned(),
            memory_bytes,
            memory_limit_bytes: limit,
            direct_io: database.direct_io.unwrap_or(false),
            background_threads: database.background_threads.unwrap_or(0),
            level_fanout: database.level_fanout.unwrap_or(0),
            filter_bits_per_key: database.filter_bits_per_key.unwrap_or(10),
            data,
            steps,
        })
    }
}

/// The least memory that an engine is asked to run with, in bytes.
const MEMORY_MIN: u64 = 16 << 20;

/// A share of the data, or a size.
fn memory(text: &str, data: &Data) -> Result<u64> {
    let bytes = match text.strip_suffix('%') {
        None => size(text)?,
        Some(share) => {
            let share: f64 = share
                .trim()
                .parse()
                .map_err(|_| Error::plan(format!("memory: {text:?} is neither a size nor a share")))?;
            (data.bytes() * share / 100.0) as u64
        }
    };
    let share = text.ends_with('%');
    if bytes < MEMORY_MIN && !share {
        return Err(Error::plan(format!("memory: {text} is too little; accepted is 16MiB or more")));
    }
    // A share of few keys: the report prints what it became.
    Ok(bytes.max(MEMORY_MIN))
}

/// Gives a run whose name exists already a number.
fn rename(step: Step, names: &mut BTreeSet<String>) -> Step {
    let Step::Run(mut run) = step else { return step };
    let base = run.name.clone();
    let mut number = 2;
    while !names.insert(run.name.clone()) {
        run.name = format!("{base} #{number}");
        number += 1;
    }
    Step::Run(run)
}

impl EngineText {
    /// The name of the engine in the report.
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            EngineText::Name(name) => name,
            EngineText::Table(table) => table.label.as_deref().unwrap_or(&table.engine),
        }
    }

    fn resolve(&self) -> Result<EngineChoice> {
        Ok(match self {
            EngineText::Name(name) => EngineChoice {
                engine: name.clone(),
                label: name.clone(),
                options: BTreeMap::new(),
                library: None,
            },
            EngineText::Table(table) => EngineChoice {
                engine: table.engine.clone(),
                label: table.label.clone().unwrap_or_else(|| table.engine.clone()),
                options: table.options.iter().flat_map(|(name, value)| option_texts(name, value)).collect(),
                library: table.library.clone(),
            },
        })
    }
}

/// An option of an engine by name; TOML reads `experiments.NAME` as a table `experiments` that has NAME.
fn option_texts(name: &str, value: &toml::Value) -> Vec<(String, String)> {
    match value {
        toml::Value::Table(parts) => {
            parts.iter().map(|(part, value)| (format!("{name}.{part}"), option_text(value))).collect()
        }
        value => vec![(name.to_owned(), option_text(value))],
    }
}

/// An option of an engine as text, however it was typed.
fn option_text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(yes) => yes.to_string(),
        other => format!("{other:?}"),
    }
}

impl DataText {
    /// The values, with defaults. Keys follow the order of their numbers where the scenario begins with a
    /// fill of db_bench, and are scattered by a hash where it begins otherwise, as YCSB loads.
    fn resolve(&self, first: Option<&str>) -> Result<Data> {
        let value = match &self.value {
            None => ValueSize::Fixed(100),
            Some(OneOrText::Number(bytes)) => ValueSize::Fixed(*bytes),
            Some(OneOrText::Text(text)) => super::text::value_size(text)?,
        };
        Ok(Data {
            keys: self.keys.unwrap_or(1_000_000),
            key_bytes: self.key_bytes.unwrap_or(16),
            value,
            entropy: self.entropy.unwrap_or(0.5),
            tables: self.tables.unwrap_or(1),
            hashed_keys: self.hashed_keys.unwrap_or(!first.is_some_and(|name| name.starts_with("fill"))),
        })
    }
}

impl StepText {
    /// The name of what it does, as far as the step itself says.
    fn workload(&self) -> Option<&str> {
        match self {
            StepText::Name(name) => Some(name),
            StepText::Run(run) => run.workload.as_deref(),
        }
    }

    fn resolve(&self, defaults: &RunText, data: &Data) -> Result<Vec<Step>> {
        match self {
            StepText::Name(name) if name == "reopen" => Ok(vec![Step::Reopen]),
            StepText::Name(name) => match super::text::control(name) {
                Some(control) => Ok(vec![Step::Control(control)]),
                None => RunText { workload: Some(name.clone()), ..RunText::default() }.expand(defaults, data),
            },
            StepText::Run(run) => run.expand(defaults, data),
        }
    }
}

impl RunText {
    /// One step for each combination of the lists.
    fn expand(&self, defaults: &RunText, data: &Data) -> Result<Vec<Step>> {
        let all = self.over(defaults);
        let workload = all
            .workload
            .clone()
            .ok_or_else(|| Error::plan("a step names no workload: { workload = \"readrandom\" }"))?;
        let threads = all.threads.clone().unwrap_or(OneOrMany::One(1));
        let definition = catalogue::find(&workload)?;
        let distributions = all.distribution.clone().unwrap_or_else(|| OneOrMany::One("default".to_owned()));
        for distribution in distributions.list() {
            super::text::distribution(&distribution)?;
        }
        let distributions = if definition.takes_distribution() {
            distributions
        } else {
            OneOrMany::One("default".to_owned())
        };
        // A fill prepares: what the other steps are asked to do slowly it does not, unless it says so itself.
        let fill = definition.is_load();
        let wanted = if fill { &self.sync } else { &all.sync };
        let syncs = match (definition.sync, wanted) {
            (Some(sync), _) => OneOrMany::One(sync),
            (None, Some(syncs)) if definition.writes => syncs.clone(),
            (None, _) => OneOrMany::One(false),
        };
        let all = RunText { rate: if fill { self.rate } else { all.rate }, ..all };
        let mut steps = Vec::new();
        for sync in syncs.list() {
            for distribution in distributions.list() {
                for threads in threads.list() {
                    let mut run = all.single(definition, data, (threads, &distribution, sync))?;
                    if all.name.is_none() {
                        run.name = step_name(
                            &run,
                            distributions.is_list().then_some(distribution.as_str()),
                            self.threads.is_some() || threads != 1,
                            syncs.is_list() || (sync && definition.sync.is_none()),
                        );
                    }
                    steps.push(Step::Run(Box::new(run)));
                }
            }
        }
        Ok(steps)
    }

    fn single(
        &self,
        definition: &catalogue::Definition,
        data: &Data,
        chosen: (u32, &str, bool),
    ) -> Result<Run> {
        let (threads, distribution, sync) = chosen;
        Ok(Run {
            name: self.name.clone().unwrap_or_default(),
            workload: definition.name.to_owned(),
            distribution: if definition.takes_distribution() {
                super::text::distribution(distribution)?
            } else {
                Distribution::Default
            },
            threads,
            until: self.until(definition, data)?,
            rate: self.rate,
            batch: self.batch.unwrap_or(1),
            multi_get: self.multi_get.unwrap_or(32),
            window: self.window.unwrap_or(1),
            in_flight: self.in_flight.unwrap_or(1),
            transaction_keys: self.transaction_keys.unwrap_or(4),
            scan_rows: self.scan_rows.unwrap_or(definition.scan_rows.max(1)),
            direction: self.direction.unwrap_or(Direction::Forward),
            sync,
            background_rate: self.background_rate.unwrap_or(0.0),
            record: self.record.clone(),
            replay: self.replay.clone(),
            as_recorded: self.as_recorded.unwrap_or(false),
            until_quiescent: self.until_quiescent.unwrap_or(definition.writes),
            verify: self.verify.unwrap_or(false),
            setup: self.setup.unwrap_or(false),
        })
    }

    /// When the step ends. A fill writes all keys, whatever limit other steps have; one that syncs each write
    /// may take hours and is limited as they are.
    fn until(&self, definition: &catalogue::Definition, data: &Data) -> Result<Until> {
        if definition.is_load() && definition.sync != Some(true) {
            return Ok(Until::Operations(data.keys));
        }
        match (&self.operations, &self.seconds) {
            (Some(operations), _) => Ok(Until::Operations(*operations)),
            (None, Some(OneOrText::Number(seconds))) => Ok(Until::Seconds(*seconds)),
            (None, Some(OneOrText::Text(text))) => Ok(Until::Seconds(duration_seconds(text)?)),
            (None, None) => Ok(Until::Operations(data.keys)),
        }
    }
}

/// The workload, and what sets this step apart from its neighbours.
fn step_name(run: &Run, distribution: Option<&str>, threads: bool, sync: bool) -> String {
    let mut name = run.workload.clone();
    if let Some(distribution) = distribution.filter(|&text| text != "default") {
        name.push_str(&format!(" {distribution}"));
    } else if run.distribution != Distribution::Default {
        name.push_str(&format!(" {}", super::text::show_distribution(run.distribution)));
    }
    if threads {
        name.push_str(&format!(" t{}", run.threads));
    }
    if sync && run.sync {
        name.push_str(" sync");
    }
    name
}
