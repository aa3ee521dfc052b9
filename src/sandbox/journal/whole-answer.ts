const bodies = new WeakMap<Response, string>();

interface Answer {
  status: number;
  /** Names and values in turn. */
  headers: readonly string[];
  body: string | undefined;
}

/** An answer whose body is known as a whole, so that the journal does not have to read it. */
export function wholeAnswer({ status, headers: flat, body }: Answer): Response {
  const headers: Record<string, string> = {};
  for (let index = 0; index < flat.length; index += 2) headers[flat[index] ?? ''] = flat[index + 1] ?? '';
  const answer = new Response(body, { status, headers });
  if (body !== undefined) bodies.set(answer, body);
  return answer;
}

/** The body of a {@link wholeAnswer}. Undefined for any other answer. */
export function bodyOfWhole(answer: Response): string | undefined {
  return bodies.get(answer);
}
