import { createRequire } from 'node:module';
import { type DestinationStream, destination, type Logger, pino } from 'pino';
import type { prettyFactory as PrettyFactory } from 'pino-pretty';
import { StoreUnavailable } from '../ports/errors.ts';
import { toPrintable } from './print.ts';
import { SOURCE_FOLDER, withSourcePlaces } from './sources.ts';

const CENSORED = '[redacted]';
const SECRET_FIELDS = [
  'authorization',
  'api_key',
  'password',
  'access_token',
  'cloud_init',
  'cloudInit',
  'content',
  'ssh_keys',
  'sshKeys',
];

/**
 * Structured logs, one JSON object a line, or one line for people on a terminal, on standard error: standard output is
 * for what a person or script reads. Nothing logs a body; what could carry a secret all the same is censored by name.
 */
export function createLog(
  level: string,
  stream: DestinationStream = process.stderr.isTTY
    ? forPeople(process.stderr)
    : destination({ fd: 2, sync: true }),
): Logger {
  const paths = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    redact: { paths, censor: CENSORED },
    serializers: { err: (error: unknown) => describeError(error) },
    // JSON leaves in place what a terminal acts on above U+001F; so escaped, the line reads the same.
    hooks: { streamWrite: toPrintable },
  };
  return pino(options, stream);
}

/**
 * A line each: the time, the level as a word, the message, and what belongs to it. Loaded where there is a terminal.
 * Without colours: of what a terminal acts on, nothing is let through.
 */
export function forPeople(target: { write(text: string): unknown }): DestinationStream {
  const load = createRequire(import.meta.url);
  const { prettyFactory } = load('pino-pretty') as { prettyFactory: typeof PrettyFactory };
  const toLine = prettyFactory({
    colorize: false,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    // An error stands on its line as everything else does: no field is treated as one.
    errorLikeObjectKeys: [],
  });
  return { write: (json) => void target.write(toPrintable(toLine(json))) };
}

interface ErrorLine {
  type: string;
  code?: string;
  message: string;
  stack: string[];
  cause?: ErrorLine;
}

const WITHHELD = '[a message that is not our own may quote what a request carried]';
const MAX_CAUSES = 5;
const MAX_FRAMES = 12;

/**
 * An error as the log may have it. A library's message may quote parameters, and its properties may hold them;
 * so of an error that our own code did not throw only the type, the code and the place are kept.
 */
function describeError(error: unknown, depth = 0): ErrorLine {
  if (!(error instanceof Error)) return { type: typeof error, message: WITHHELD, stack: [] };
  const { code, syscall } = error as NodeJS.ErrnoException;
  const stack = framesOf(error);
  const isSafe = typeof syscall === 'string' || stack[0]?.includes(SOURCE_FOLDER) === true;
  return {
    type: error.constructor.name,
    ...(typeof code === 'string' && { code: code.slice(0, 100) }),
    message: isSafe ? error.message : WITHHELD,
    stack,
    ...(hasMoreToSay(error) && depth < MAX_CAUSES && { cause: describeError(error.cause, depth + 1) }),
  };
}

/** Each request meets a database that is away: that error's message has what its cause says, which is thrown in the same place. */
function hasMoreToSay(error: Error): boolean {
  return error.cause !== undefined && !(error instanceof StoreUnavailable);
}

/** The places of the stack, without the message that stands before them. */
function framesOf({ stack = '', message }: Error): string[] {
  const end = stack.indexOf(message) + message.length;
  return withSourcePlaces(stack.slice(end))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, MAX_FRAMES);
}
