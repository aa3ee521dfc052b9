import { Argument, type Command, Option } from 'commander';
import { type CommandSpec, type Flag, kindOf, type Operation } from '../operator-kit/operation.ts';
import { printLine, printTable } from '../runtime/print.ts';
import type { Body } from './database.ts';
import { localActor } from './local-actor.ts';
import { parseSeconds, parseTime, parseTimeToCome, parseUsd } from './parse.ts';
import { cutName, isData, type OutputFlag, printData, withOutput } from './print-records.ts';

/** Opens the database of a product for a command. */
export type On<Deps> = <Args extends unknown[]>(command: Command, body: Body<Deps, Args>) => Command;

/** Adds a command for each action whose command's name begins with the noun. */
export function addActions<Deps extends { clock: { now(): number } }>(
  noun: Command,
  all: readonly Operation<Deps>[],
  on: On<Deps>,
): Command {
  for (const action of all)
    for (const spec of action.commands ?? []) {
      const [first, verb] = spec.name.split(' ');
      if (first !== noun.name()) continue;
      build(verb === undefined ? noun : noun.command(verb), action, spec, on);
    }
  // The help of every noun begins with `create`.
  const isLater = (command: Command): number => Number(command.name() !== 'create');
  (noun.commands as Command[]).sort((a, b) => isLater(a) - isLater(b));
  return noun;
}

function build<Deps extends { clock: { now(): number } }>(
  command: Command,
  action: Operation<Deps>,
  spec: CommandSpec<Deps, never, never>,
  on: On<Deps>,
): void {
  const { description, args = {}, flags = {}, fixed = {}, by, prepare, toData, toText } = spec;
  for (const [name, [syntax, what]] of Object.entries(args)) {
    const argument = new Argument(syntax, what);
    const { options } = action.input[name] as { options?: string[] };
    command.addArgument(options === undefined ? argument : argument.choices(options));
  }
  const names = Object.keys(args);
  on(command, async (deps, ...given: unknown[]) => {
    const values = given
      .slice(0, names.length)
      .map((value, index) =>
        kindOf(action.input[names[index] ?? '']) === 'usd' ? toUsd(String(value)) : value,
      );
    const options = given[names.length] as OutputFlag & Record<string, unknown>;
    const entries = Object.entries(flags).map(([name, flag]) => [
      name,
      readFlag(action, name, flag, options, deps),
    ]);
    const isOrdered = options['yes'] === true;
    const input = {
      ...Object.fromEntries([...names.map((name, index) => [name, values[index]]), ...entries]),
      ...(action.dryRun && { dry_run: !isOrdered }),
      ...fixed,
    };
    const actor = localActor(by && (options[optionOf(by).attributeName()] as string | undefined));
    const prepared = ((await prepare?.(deps, input as never)) ?? input) as never;
    const reply = (await action.perform(deps, actor, prepared)) as never;
    const context = { deps, input: prepared, actor, cutName };
    if (isData(options))
      return printData(options, toData === undefined ? reply : await toData(reply, context));
    for (const part of await toText(reply, context))
      if (typeof part === 'string') printLine(part);
      else printTable(part.head, part.rows);
  });
  if (description !== undefined) command.description(description);
  if (action.dryRun && fixed['dry_run'] === undefined)
    command.option('--yes', 'do it; without this flag, say what would be done');
  for (const [name, flag] of Object.entries(flags))
    command.addOption(optionOf(flag, kindOf(action.input[name])));
  if (by !== undefined) command.addOption(optionOf(by));
  withOutput(command);
}

function optionOf([syntax, description, more]: Flag, kind?: ReturnType<typeof kindOf>): Option {
  const option = new Option(syntax, description);
  option.makeOptionMandatory(more?.isRequired === true);
  if (more?.default !== undefined) option.default(more.default, more.shownDefault);
  // An invalid duration is refused before the database is opened.
  return kind === 'seconds' ? option.argParser((text) => parseSeconds(`${option.long}`, text)) : option;
}

function readFlag<Deps extends { clock: { now(): number } }>(
  { input }: Operation<Deps>,
  name: string,
  flag: Flag,
  options: Record<string, unknown>,
  { clock }: Deps,
): unknown {
  const option = optionOf(flag);
  const given = options[option.attributeName()];
  const kind = kindOf(input[name]);
  if (kind === 'switch') return given === true;
  if (kind !== 'time' || given === undefined) return given;
  const parse = flag[2]?.mayBePast ? parseTime : parseTimeToCome;
  return new Date(parse(`${option.long}`, String(given), clock.now())).toISOString();
}

const toUsd = (text: string): number => parseUsd('The amount', text) / 1_000_000;
