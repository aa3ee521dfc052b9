import { z } from 'zod';
import { ApiError, type ErrorCode } from '../contract/errors.ts';
import type { Clock } from '../ports/clock.ts';
import { type AuditedAction, type AuditedStore, audited } from './audit.ts';
import type { AnyDetail, AnyList, DetailOf, ListIn, RowOf } from './columns.ts';
import { type Actor, allows, type Role } from './model.ts';

type Fields = Readonly<Record<string, z.ZodType>>;
type InputOf<F extends Fields> = z.output<z.ZodObject<F>>;

/** What the API's document says about a view or an action. */
interface Described<F extends Fields, Schema extends z.ZodType, Name extends string = string> {
  /** Its `operationId`. */
  name: Name;
  tag: string;
  /** Path below `/operator/v1`, such as `/instances/{instanceId}/retry`. */
  path: string;
  summary: string;
  description: string;
  /** The parameters of the path, then the fields of the query or of the body. */
  input?: F;
  /** A description of the reply, and its schema. */
  reply: readonly [description: string, schema: Schema];
  /** Its error codes besides those of each route. */
  errors?: readonly ErrorCode[];
}

/** A sentence, the rows of a table, or facts by their names. */
export type TextPart = string | readonly object[] | Readonly<Record<string, unknown>>;

type Input = Record<string, unknown>;

/**
 * A command that reads the view or performs the action. Its flags and arguments become the input. Its functions are
 * methods, so that a list of operations can hold commands of different inputs.
 */
export interface CommandSpec<In = Input, Reply = unknown> {
  /** Name without `berth`, such as `instances retry`. */
  name: string;
  /** Absent for a top-level command, which the list of commands describes. */
  description?: string;
  /** Its arguments by their name in the input: such as `<instance>`, and a description. */
  args?: Readonly<Record<string, readonly [syntax: string, description?: string]>>;
  /** Its flags by their name in the input. `by` names the operator, instead of the user of the machine. */
  flags?: Readonly<Record<string, Flag>>;
  /** Input that the command line does not give. */
  fixed?: Readonly<Record<string, unknown>>;
  /**
   * Makes it a list with `--limit`. `limit`: the default · `hidden`, `none`: as the `list` of a view says, for a command
   * without one · `rows`: those of the reply that it shows.
   */
  list?: {
    limit?: number;
    hidden?: readonly string[];
    none?: string;
    rows?(reply: Reply): readonly object[];
    /** `--limit` shows the last rows. */
    fromEnd?: true;
  };
  /** Data for programs; default: the reply. */
  toData?(reply: Reply, input: In): unknown;
  /** Text for people, after the list or the facts of the view. */
  toText?(reply: Reply, input: In, now: number): readonly TextPart[];
}

/**
 * `default`: a value, shown in the help · `isRequired` · `mayBePast`: a time before now is accepted · `words`: texts and
 * their values · `value`: of a flag without text, instead of true.
 */
export type Flag = readonly [
  syntax: string,
  description: string,
  more?: {
    default?: string | number;
    shownDefault?: string;
    isRequired?: true;
    mayBePast?: true;
    words?: Readonly<Record<string, unknown>>;
    value?: boolean;
  },
];

/** A form of the console that performs the action. */
export interface FormSpec<Deps, In = Input, Reply = unknown> {
  title(input: In): string;
  button: string;
  /** The name of a view: the page of its list has a form with a field for each input. */
  beside?: string;
  /**
   * Puts it in the rows of a view's list, or of a list in a view's object (`showTeam.members`): the view's name, and the
   * fields for a row; undefined: not in this row.
   */
  inRows?: {
    of: string;
    /** Texts of its input that the row has a field for. */
    asks?: readonly string[];
    fields(row: never): Readonly<Record<string, string | null>> | undefined;
  };
  isDangerous?: boolean;
  /** Who reads its reason; default: only the audit log keeps it. */
  reason?: string;
  /** The page that follows the action, or its cancellation. */
  page(input: In): string;
  /** The sentences of the page before the button; for an action with a dry run, before its effect. */
  preview?(reply: Reply, deps: Deps, input: In): readonly string[] | Promise<readonly string[]>;
  /** Input for the dry run that the link to the action does not have. */
  dryRunWith?: Readonly<Record<string, unknown>>;
  /** The fields that the form sends. By default, those that the page was given. */
  send?(reply: Reply): Readonly<Record<string, string | undefined>>;
  /** Reads the fields. By default, the types of the input decide how. @throws if they are invalid */
  parse?(field: (name: string) => string | undefined, now: number): Record<string, unknown>;
  /** A secret of the reply, which a page shows once before the next one. */
  secret?(reply: Reply): string;
  /** Whether the operator must have signed in within the last ten minutes. */
  needsFreshSignIn?: true;
}

/** A view or an action, in the form from which routes, commands and forms are derived. */
export interface Operation<Deps> extends Required<Described<Fields, z.ZodType>> {
  method: 'get' | 'post';
  status: 200 | 201;
  example?: object;
  isBodyOptional?: boolean;
  check?: { isValid(body: Input): boolean; path: string[]; error: string };
  /** Returns the reply to a dry run, which changes nothing. */
  dryRun?(deps: Deps, input: Input): Promise<unknown>;
  /** Its reply as CSV, for a request that accepts only that. */
  toCsv?(reply: unknown): string;
  commands?: readonly CommandSpec[];
  form?: FormSpec<Deps>;
  list?: AnyList;
  detail?: AnyDetail;
  /** The role that it needs. */
  needs: Role;
  perform(deps: Deps, actor: Actor, input: Input): Promise<unknown>;
}

interface ViewParts<
  Deps,
  F extends Fields,
  Schema extends z.ZodType,
  Name extends string,
  Rows extends string,
> extends Described<F, Schema, Name> {
  toCsv?(reply: z.output<Schema>): string;
  commands?: readonly CommandSpec<InputOf<F>, z.output<Schema>>[];
  /** The table of its rows, on the command line and in the console. */
  list?: ListIn<Rows, RowOf<z.output<Schema>, Rows>>;
  /** The facts about its object, on the command line and in the console. */
  detail?: DetailOf<z.output<Schema>>;
  read: (deps: Deps, input: InputOf<F>) => z.output<Schema> | Promise<z.output<Schema>>;
}

/** The operator API of a sandbox has further operations, at another URL. */
export interface InSandbox<Deps> {
  url: string;
  operations: readonly Operation<Deps>[];
}

/** Declares something that operators can see. Its route and its document are derived from this. */
export function defineView<
  Deps,
  Schema extends z.ZodType,
  Name extends string,
  F extends Fields = Record<never, never>,
  Rows extends string = never,
>({ read, ...described }: ViewParts<Deps, F, Schema, Name, Rows>) {
  return {
    input: {},
    errors: [],
    ...described,
    method: 'get' as const,
    status: 200 as const,
    needs: 'viewer' as const,
    read,
    perform: async (deps: Deps, _actor: Actor, input: InputOf<F>) => read(deps, input),
  };
}

export interface ActionDeps {
  store: AuditedStore;
  clock: Pick<Clock, 'now'>;
}

/** If false, the action is carried out. */
type DryRun = { dry_run?: boolean };

interface ActionParts<Deps, F extends Fields, Schema extends z.ZodType, Name extends string>
  extends Described<F, Schema, Name> {
  /** The role that it needs; default: `on-call`. */
  needs?: Role;
  /** 201 if the action creates something. */
  status?: 200 | 201;
  example?: object;
  isBodyOptional?: boolean;
  /** A condition on several fields of its body, and what is expected. */
  check?: { isValid(body: InputOf<F>): boolean; path: string[]; error: string };
  commands?: readonly CommandSpec<InputOf<F> & DryRun, z.output<Schema>>[];
  form?: FormSpec<Deps, InputOf<F> & DryRun, z.output<Schema>>;
  /** Replaces names in the input by ids, before anything else. @throws if there is no such object */
  resolve?: (deps: Deps, input: InputOf<F>) => Promise<Partial<InputOf<F>>>;
  /** Its row of the audit log. Absent if the action changes nothing, or writes its own row. */
  audit?: (
    input: InputOf<F>,
    deps: Deps,
  ) => AuditedAction<z.output<Schema>> | Promise<AuditedAction<z.output<Schema>>>;
  /** Returns the reply to a dry run, which changes nothing. An action that has a dry run does it by default. */
  dryRun?: (deps: Deps, input: InputOf<F>) => Promise<z.output<Schema>>;
  /**
   * Carries the action out. The transactions of `deps.store` are part of the one that writes the audit log. Calls
   * `skipAudit` if it changed nothing and needs no row.
   */
  run: (deps: Deps, input: InputOf<F>, actor: Actor, skipAudit: () => void) => Promise<z.output<Schema>>;
}

const dryRunField = z
  .boolean()
  .default(true)
  .meta({ description: 'False: carry it out. True: only show the effect.' });

/**
 * Declares something that operators can do. Its route, its document, its command and its form are derived from this, and
 * so is its row in the test of authorisation.
 */
export function defineAction<
  Deps extends ActionDeps,
  Schema extends z.ZodType,
  Name extends string,
  F extends Fields = Record<never, never>,
>({ resolve, audit, dryRun, run, needs = 'on-call', ...described }: ActionParts<Deps, F, Schema, Name>) {
  const { input = {} as F, example } = described;
  return {
    errors: ['not_found', 'invalid_state'] as const,
    status: 200 as const,
    ...described,
    needs,
    method: 'post' as const,
    input: dryRun ? withDryRun(input, described.path) : input,
    ...((example || dryRun) && { example: { ...(dryRun && { dry_run: false }), ...example } }),
    ...(dryRun && {
      dryRun: async (deps: Deps, given: InputOf<F>) =>
        dryRun(deps, { ...given, ...(await resolve?.(deps, given)) }),
    }),
    /** @throws if it is refused; the audit log then has a row, unless it was a dry run */
    perform: async (deps: Deps, actor: Actor, given: InputOf<F> & DryRun): Promise<z.output<Schema>> => {
      const input = { ...given, ...(await resolve?.(deps, given)) };
      const isDryRun = dryRun !== undefined && input.dry_run !== false;
      if (isDryRun || audit === undefined) assertAllowed(actor, needs);
      if (isDryRun) return dryRun(deps, input);
      if (audit === undefined) return run(deps, input, actor, () => undefined);
      let isSkipped = false;
      const skipAudit = (): void => {
        isSkipped = true;
      };
      const row = await audit(input, deps);
      const done = (reply: z.output<Schema>) => (isSkipped ? null : (row.done?.(reply) ?? {}));
      return audited(deps, actor, { ...row, done }, async (store) => {
        assertAllowed(actor, needs);
        return run({ ...deps, store }, input, actor, skipAudit);
      });
    },
  };
}

/** @throws {ApiError} `forbidden` */
export function assertAllowed({ role = 'admin', name }: Pick<Actor, 'role' | 'name'>, needed: Role): void {
  if (allows(role, needed)) return;
  const text = `This needs the role ${needed}, and the key of ${name} has the role ${role}: ask an operator who is admin.`;
  throw new ApiError('forbidden', text);
}

/** Adds `dry_run` after the parameters of the path. */
function withDryRun(input: Fields, path: string): Fields {
  const { params, rest } = splitInput({ input, path });
  return { ...params, dry_run: dryRunField, ...rest };
}

const notInApi = new WeakSet<z.ZodType>();

/** Marks a field of the input that only commands or forms give: the API does not have it. */
export function outsideApi<Schema extends z.ZodType>(schema: Schema): Schema {
  notInApi.add(schema);
  return schema;
}

const forPrinting = new WeakSet<z.ZodType>();

/** Marks a field of the input that only says how a command prints the reply: no server needs it. */
export function onlyPrinted<Schema extends z.ZodType>(schema: Schema): Schema {
  forPrinting.add(schema);
  return outsideApi(schema);
}

export function isOnlyPrinted(schema: z.ZodType | undefined): boolean {
  return schema !== undefined && forPrinting.has(schema);
}

export type InputKind = 'switch' | 'seconds' | 'usd' | 'minutes' | 'count' | 'time' | 'text';

/** How the text of a flag or a form's field becomes a value of the input. The unit is the end of its name. */
export function kindOf(name: string, schema: z.ZodType | undefined): InputKind {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodNullable)
    return kindOf(name, schema.unwrap() as z.ZodType);
  if (schema instanceof z.ZodBoolean) return 'switch';
  if (schema instanceof z.ZodISODateTime) return 'time';
  if (!(schema instanceof z.ZodNumber)) return 'text';
  if (name.endsWith('_s')) return 'seconds';
  if (name.endsWith('_minutes')) return 'minutes';
  return name.endsWith('_usd') ? 'usd' : 'count';
}

/** Divides the input into the parameters of the path and the fields of the query or of the body. */
export function splitInput({ input, path }: { input: Fields; path: string }): {
  params: Fields;
  rest: Fields;
} {
  const entries = Object.entries(input).filter(([, schema]) => !notInApi.has(schema));
  const isParameter = ([name]: (typeof entries)[number]): boolean => path.includes(`{${name}}`);
  return {
    params: Object.fromEntries(entries.filter(isParameter)),
    rest: Object.fromEntries(entries.filter((entry) => !isParameter(entry))),
  };
}
