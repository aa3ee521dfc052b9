import { z } from 'zod';
import { formatPath } from '../contract/errors.ts';
import { toLine } from './answers.ts';
import { type Answer, type Call, invalidAnswer, readJson } from './receive.ts';

/** Called for each element that was left out of a list. `call` is such as `GET /configurations`. */
export type OnProblem = (problem: { call: string; message: string }) => void;

/** Converts an answer to its value. @throws {ProviderError} */
export type ReadAnswer<T> = (call: Call, answer: Answer) => T;

/** Reads an answer that matches `schema`. Fields that the schema does not name are removed. */
export function readAs<S extends z.ZodType>(schema: S, parse = readJson): ReadAnswer<z.infer<S>> {
  return (call, answer) => {
    const result = schema.safeParse(parse(call, answer));
    if (!result.success) throw invalidAnswer(call, answer.status, firstIssue(result.error));
    return result.data;
  };
}

/** As {@link readAs}, for a request by id. An answer with another id is invalid. */
export function readOne<S extends z.ZodType<{ id: string }>>(id: string, schema: S): ReadAnswer<z.infer<S>> {
  const read = readAs(schema);
  return (call, answer) => {
    const value = read(call, answer);
    if (value.id !== id) throw invalidAnswer(call, answer.status, 'expected the requested id');
    return value;
  };
}

/** An element that does not match is skipped and reported. */
export function elementsOf<S extends z.ZodType>(
  key: string,
  schema: S,
  onLeftOut: OnProblem,
): ReadAnswer<z.infer<S>[]> {
  const readList = readAs(z.object({ [key]: z.array(z.unknown()), error: z.null().optional() }));
  return (call, answer) => {
    const list = (readList(call, answer) as Record<string, unknown[]>)[key] ?? [];
    return list.flatMap((element, index) => {
      const result = schema.safeParse(element);
      if (result.success) return [result.data];
      const message = `${key}[${index}]: ${firstIssue(result.error)}`;
      onLeftOut({ call: call.name, message: toLine(message, call.secrets) });
      return [];
    });
  };
}

function firstIssue({ issues: [issue] }: z.ZodError): string {
  if (issue === undefined) return 'not as expected';
  return [formatPath(issue.path), issue.message].filter(Boolean).join(': ');
}
