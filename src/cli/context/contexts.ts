import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { z } from 'zod';
import { ConfigError, toLine } from '../../config/findings.ts';
import { parseConfig } from '../../config/parse-config.ts';
import { readYamlFile } from '../../config/yaml-file.ts';
import { Fatal, fileProblem } from '../../ports/errors.ts';

/** The database of `--config` and `--database`: commands need no server there. */
export const LOCAL = 'local';

/** `operator`: an orchestrator's admin listener · `marketplace`: a marketplace's · `account`: the API for tenants. */
const kinds = ['operator', 'marketplace', 'account'] as const;
export type ContextKind = (typeof kinds)[number];

/** A server, and the credential to use there. */
const contextSchema = z.strictObject({
  kind: z.enum(kinds),
  url: z.string(),
  key_file: z.string(),
  /** The certificates of a private certificate authority, in PEM. */
  ca_file: z.string().optional(),
});
type ContextFields = z.output<typeof contextSchema>;
export type Context = ContextFields & { name: string };

const contextsSchema = z.strictObject({
  /** Absent: `local`. */
  current: z.string().optional(),
  contexts: z.record(z.string(), contextSchema).default({}),
});
export type Contexts = z.output<typeof contextsSchema>;

/** The file of the contexts: $BERTH_CONTEXTS, or `berth/contexts.yaml` in the user's configuration folder. */
export function contextsFile(env: NodeJS.ProcessEnv = process.env): string {
  const folder = env['XDG_CONFIG_HOME'] || join(homedir(), '.config');
  return env['BERTH_CONTEXTS'] || join(folder, 'berth', 'contexts.yaml');
}

/** Reads the contexts. A missing file has none. @throws {Fatal} */
export function readContexts(): Contexts {
  const file = contextsFile();
  if (!existsSync(file)) return { contexts: {} };
  try {
    return parseConfig(contextsSchema, readYamlFile(file), []).config;
  } catch (cause) {
    const [finding] = cause instanceof ConfigError ? cause.findings : [];
    if (finding === undefined) throw cause;
    throw new Fatal(`${toLine(finding)}. Correct the file, or remove it and add the contexts again.`, {
      cause,
    });
  }
}

/** Replaces the file at once. Only its owner can read it. @throws {Fatal} */
export function writeContexts(contexts: Contexts): void {
  const file = contextsFile();
  const draft = `${file}.${process.pid}.tmp`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(draft, stringify(contexts, { lineWidth: 0 }), { mode: 0o600 });
    renameSync(draft, file);
  } catch (cause) {
    throw new Fatal(
      `The contexts cannot be written to ${file} (${fileProblem(cause)}): set BERTH_CONTEXTS to another file.`,
      { cause },
    );
  }
}

/** @throws {Fatal} if there is none of this name */
export function contextNamed({ contexts }: Contexts, name: string): Context {
  const found = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
  if (found !== undefined) return { name, ...found };
  const known = [LOCAL, ...Object.keys(contexts)].join(', ');
  throw new Fatal(`There is no context ${name}: give one of ${known}, or add it with \`berth context add\`.`);
}

/** Adds `--context` to a command. */
export function withContext(command: Command): Command {
  return command.option(
    '--context <name>',
    'a server of `berth context ls`, or local for the database; default: the one in use',
  );
}

/** The context of a command. Undefined: the local database. @throws {Fatal} */
export function contextOf(command: Command): Context | undefined {
  const { context, config, database } = command.optsWithGlobals<Record<string, string | undefined>>();
  const flag = config === undefined ? database && '--database' : '--config';
  if (flag !== undefined && context !== undefined && context !== LOCAL)
    throw new Fatal(`${flag} is for the context local, and --context is ${context}: leave one of them out.`);
  if (flag !== undefined || context === LOCAL) return undefined;
  const contexts = readContexts();
  const name = context ?? contexts.current;
  return name === undefined ? undefined : contextNamed(contexts, name);
}

/** An action that needs the database: it is refused while a server is in use. */
export function onlyLocal<Args extends unknown[]>(
  action: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  return async (...args) => {
    const context = contextOf(args.at(-1) as Command);
    if (context === undefined) return action(...args);
    throw new Fatal(
      `This command needs the database, and the context ${context.name} is a server: run it on the machine of the server, with --context local.`,
    );
  };
}

const described: Readonly<Record<ContextKind, string>> = {
  operator: 'the key of an operator',
  marketplace: "the key of a marketplace's operator",
  account: 'the key of an account',
};

/** @throws {Fatal} if the context is of another kind */
export function assertKind(context: Context, ...wanted: readonly [ContextKind, ...ContextKind[]]): void {
  if (wanted.includes(context.kind)) return;
  const others = Object.entries(readContexts().contexts)
    .filter(([, { kind }]) => wanted.includes(kind))
    .map(([name]) => name);
  const remedy =
    others.length === 0 ? 'add one with `berth context add`' : `give --context ${others.join(' or ')}`;
  throw new Fatal(
    `The context ${context.name} has ${described[context.kind]}, and this command needs ${wanted.map((kind) => described[kind]).join(' or ')}: ${remedy}.`,
  );
}

/** The key of a context. @throws {Fatal} */
export function readKey({ name, key_file: file }: Context): string {
  const key = readFileOf(name, file, 'key').trim();
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new Fatal(`${file} of the context ${name} has no key: write only the key into it.`);
  return key;
}

/** The certificates of a private authority. @throws {Fatal} */
export function readCa({ name, ca_file: file }: Context): string | undefined {
  return file === undefined ? undefined : readFileOf(name, file, 'CA');
}

function readFileOf(name: string, file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new Fatal(
      `The ${what} file ${file} of the context ${name} cannot be read (${fileProblem(cause)}): see \`berth context show ${name}\`.`,
      { cause },
    );
  }
}
