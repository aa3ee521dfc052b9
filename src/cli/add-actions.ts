import { Argument, type Command, Option } from 'commander';
import { columnsOf, toColumns } from '../operator-kit/columns.ts';
import {
  type CommandSpec,
  type Flag,
  type InputKind,
  kindOf,
  type Operation,
} from '../operator-kit/operation.ts';
import { parseSeconds, parseTimeToCome, readText } from '../operator-kit/parse.ts';
import { Fatal } from '../ports/errors.ts';
import { type ConfirmFlags, isConfirmed, withConfirm } from './confirm.ts';
import type { OnTarget } from './context/target.ts';
import {
  isData,
  type ListFlags,
  printData,
  printDetail,
  printPart,
  printRows,
  withList,
  withOutput,
  withWatch,
} from './print-records.ts';
import { ChangedRows, repeat, untilInterrupted } from './watch.ts';

type Schema = Operation<never>['input'][string];

/** Above the length of any list: `--limit` has at most six digits. */
const ALL = 1_000_000;

/** Adds a command for each view and action whose command's name begins with the noun. */
export function addActions<Deps>(
  noun: Command,
  all: readonly Operation<Deps>[],
  on: OnTarget<Deps>,
): Command {
  for (const action of all)
    for (const spec of action.commands ?? []) {
      const [first, verb] = spec.name.split(' ');
      if (first !== noun.name()) continue;
      build(verb === undefined ? noun : noun.command(verb, { isDefault: verb === 'ls' }), action, spec, on);
    }
  // The help of every noun begins with `create`.
  const isLater = (command: Command): number => Number(command.name() !== 'create');
  (noun.commands as Command[]).sort((a, b) => isLater(a) - isLater(b));
  return noun;
}

function build<Deps>(command: Command, action: Operation<Deps>, spec: CommandSpec, on: OnTarget<Deps>): void {
  const { description, args = {}, flags = {}, fixed = {}, list } = spec;
  for (const [name, [syntax, what]] of Object.entries(args)) {
    const argument = new Argument(syntax, what);
    const choices = choicesOf(action.input[name]);
    command.addArgument(choices === undefined ? argument : argument.choices(choices));
  }
  const names = Object.keys(args);
  const asks = changesSomething(action);
  on(command, async (target, ...given) => {
    const options = given[names.length] as ListFlags & Record<string, unknown>;
    const now = target.clock.now();
    const read = (name: string, what: string, value: unknown, flag?: Flag): [string, unknown] => [
      name,
      typeof value === 'string' ? readValue(kindOf(name, action.input[name]), what, value, now, flag) : value,
    ];
    const entries = [
      ...names.map((name, index) => read(name, `The ${name.replace(/_.*/, '')}`, given[index])),
      ...Object.entries(flags).map(([name, flag]) =>
        read(name, ...readFlag(name, flag, action, options), flag),
      ),
    ];
    const input = {
      ...(list && { limit: (options.limit ?? ALL) + 1 }),
      ...fixed,
      ...Object.fromEntries(entries.filter(([, value]) => value !== undefined)),
    };
    const perform = async (more: object, watched?: ChangedRows): Promise<void> => {
      const all = { ...input, ...more };
      const reply = await target.perform(action, all, options['by'] as string | undefined);
      printReply(action, spec, { reply, input: all, options, now: target.clock.now(), watched });
    };
    if (options.watch === true) {
      const watched = new ChangedRows();
      return untilInterrupted((end) => repeat(target.clock, end, () => perform({}, watched)));
    }
    const showPlan = () =>
      action.dryRun === undefined ? printPlan(action, { input, options }) : perform({ dry_run: true });
    if (asks && !(await isConfirmed(options as ConfirmFlags, showPlan))) return;
    await perform(action.dryRun === undefined ? {} : { dry_run: false });
  });
  if (description !== undefined) command.description(description);
  if (asks) withConfirm(command);
  if (list === undefined) withOutput(command);
  else withWatch(withList(command, list.limit));
  for (const [name, flag] of Object.entries(flags))
    command.addOption(optionOf(flag, name, action.input[name]));
}

/** Whether it changes or ends what there is. What creates something does not ask. */
function changesSomething({ method, status }: Operation<never>): boolean {
  return method === 'post' && status !== 201;
}

/** The plan of an action without a dry run: what it does, and to what. */
function printPlan(
  { summary, description }: Operation<never>,
  { input, options }: Pick<Answered, 'input' | 'options'>,
): void {
  if (isData(options)) printData(options, { done: false, action: summary, input });
  else {
    printPart(`${summary}. ${description}`);
    if (Object.keys(input).length > 0) printPart(input);
  }
}

interface Answered {
  reply: unknown;
  input: Record<string, unknown>;
  options: ListFlags;
  now: number;
  watched: ChangedRows | undefined;
}

/** Prints what a command has been answered. The reply has all of it: it may come from a server. */
function printReply<Deps>(
  { list: declared, detail }: Operation<Deps>,
  { list, toData, toText }: CommandSpec,
  { reply, input, options, now, watched }: Answered,
): void {
  const shown = { now, isWide: options.output === 'wide' };
  if (list !== undefined) {
    const rows =
      list.rows?.(reply) ?? (toData?.(reply, input) as object[]) ?? (reply as Rows)[declared?.rows ?? ''];
    const columns =
      declared === undefined ? columnsOf(rows[0] ?? {}, list.hidden) : toColumns(declared.columns);
    const { none = declared?.none, fromEnd } = list;
    printRows(rows, options, { columns, none, now, fromEnd, watched });
  } else if (isData(options)) printData(options, toData === undefined ? reply : toData(reply, input));
  else if (detail !== undefined || toText === undefined) printDetail(detail, reply as object, shown);
  if (!isData(options)) for (const part of toText?.(reply, input, now) ?? []) printPart(part, shown);
}

type Rows = Record<string, object[]>;

function optionOf([syntax, description, more]: Flag, name: string, schema?: Schema): Option {
  const option = new Option(syntax, description);
  option.makeOptionMandatory(more?.isRequired === true);
  if (more?.default !== undefined) option.default(more.default, more.shownDefault);
  const choices = choicesOf(schema);
  if (choices !== undefined) option.choices(choices);
  const { parseArg } = option;
  if (choices !== undefined && parseArg !== undefined)
    option.argParser((text, before) => parseArg(inTheirCase(choices, text), before));
  // An invalid duration is refused before the database is opened.
  return kindOf(name, schema) === 'seconds'
    ? option.argParser((text) => parseSeconds(`${option.long}`, text))
    : option;
}

/** The value that differs from the text at most in case, or the text. */
function inTheirCase(choices: readonly string[], text: string): string {
  return choices.find((one) => one.toLowerCase() === text.toLowerCase()) ?? text;
}

/** The values of an enumeration. */
function choicesOf(schema: Schema | undefined): string[] | undefined {
  const { options, unwrap } = (schema ?? {}) as { options?: string[]; unwrap?: () => Schema };
  return options ?? (unwrap === undefined ? undefined : choicesOf(unwrap()));
}

/** The name of the flag, and what it was given. */
function readFlag<Deps>(
  name: string,
  flag: Flag,
  { input }: Operation<Deps>,
  options: Record<string, unknown>,
): [what: string, value: unknown] {
  const option = optionOf(flag, name);
  const given = options[option.attributeName()];
  const { words, value } = flag[2] ?? {};
  const what = `${option.long}`;
  if (words !== undefined && typeof given === 'string') {
    if (Object.hasOwn(words, given)) return [what, words[given]];
    if (kindOf(name, input[name]) === 'switch')
      throw new Fatal(`${what} ${given}: give \`${Object.keys(words).join('` or `')}\`.`);
  }
  if (words !== undefined || kindOf(name, input[name]) !== 'switch') return [what, given];
  return [what, value === undefined ? given === true : given && value];
}

/** @throws {Fatal} if it is invalid, or a time in the past that must be in the future */
function readValue(
  kind: InputKind,
  what: string,
  text: string,
  now: number,
  flag: Flag | undefined,
): unknown {
  if (kind === 'time' && !flag?.[2]?.mayBePast) parseTimeToCome(what, text, now);
  return readText(kind, what, text, now);
}
