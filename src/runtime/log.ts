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
 * Structured logs on standard error: one JSON object a line, or readable lines on a terminal. Standard output is for
 * results. Request and response bodies are not logged, and fields with the names of secrets are redacted.
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
    // JSON does not escape control characters above U+001F that a terminal acts on. The escaped line parses to the same
    // value.
    hooks: { streamWrite: toPrintable },
  };
  return pino(options, stream);
}

/**
 * Formats each record as one line: time, level, message, fields. The formatter is loaded only on a terminal. No
 * colours: terminal control characters are all escaped.
 */
export function forPeople(target: { write(text: string): unknown }): DestinationStream {
  const load = createRequire(import.meta.url);
  const { prettyFactory } = load('pino-pretty') as { prettyFactory: typeof PrettyFactory };
  const toLine = prettyFactory({
    colorize: false,
    singleLine: true,
    translateTime: 'SYS:HH:MM:ss.l',
    // An error is printed on the same line as the other fields.
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

const WITHHELD = '[message withheld: it may quote request data]';
const MAX_CAUSES = 5;
const MAX_FRAMES = 12;

/**
 * Formats an error for the log. A library's message or properties may quote parameters. For errors that Berth did not
 * throw, only the type, the code and the stack are kept.
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

/**
 * Whether to log the cause. While the database is unavailable, every request fails; its error already quotes the cause,
 * which was thrown in the same place.
 */
function hasMoreToSay(error: Error): boolean {
  return error.cause !== undefined && !(error instanceof StoreUnavailable);
}

/** The frames of a stack, without the message before them. */
function framesOf({ stack = '', message }: Error): string[] {
  const end = stack.indexOf(message) + message.length;
  return withSourcePlaces(stack.slice(end))
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, MAX_FRAMES);
}
