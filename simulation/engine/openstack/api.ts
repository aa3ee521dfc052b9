import type { Doer } from '../engine.ts';
import { Refusal } from '../surroundings.ts';

/** The owner of a token. */
export interface Who {
  project: string;
  isAdmin: boolean;
}

export type Fields = Record<string, unknown>;
export type Text = Record<string, string>;

/** A request to one service, with a token that it accepts. */
export interface Asked {
  query: URLSearchParams;
  body: Fields;
  who: Who;
  by: Doer;
}

/** Returns the body of the answer, if it has one. */
type Handler = (asked: Asked, ...ids: string[]) => Fields | undefined;
/** `*` in a path is one part, which the handler is given. */
export type Route = readonly [method: string, path: string, handler: Handler];

/** @throws {Refusal} */
export function answer(routes: readonly Route[], method: string, path: string, asked: Asked) {
  for (const [verb, pattern, handler] of routes) {
    const found = new RegExp(`^${pattern.replaceAll('*', '([^/]+)')}$`).exec(path);
    if (found !== null && verb === method) return handler(asked, ...found.slice(1).map(decodeURIComponent));
  }
  throw new Refusal(404, `There is no ${method} ${path}.`);
}

export function assertAdmin({ isAdmin }: Who): void {
  if (!isAdmin) throw new Refusal(403, "Policy doesn't allow this to be performed.");
}

interface Item {
  id: string;
  project_id: string;
  /** Whether every project is shown it. */
  isPublic?: boolean;
}

/** The resources of one kind: how they are shown, and what a request may do with them. */
interface Kind<T extends Item> {
  /** Its name in bodies. Paths have its plural. */
  name: string;
  all: { values(): Iterable<T> };
  /** What an answer says of one. Default: all of it. */
  view?: (item: T) => object;
  /** The fields that only an answer about one has. Default: none. */
  hidden?: (item: T) => readonly string[];
  /** Whether a list has it. Default: yes. */
  isListed?: (item: T) => boolean;
  /** Whether an administrator is shown those of all projects. */
  isShownToAdmins?: boolean;
  create?: (wanted: Fields, asked: Asked) => T;
  /** Default: the fields are replaced. */
  change?: (item: T, wanted: Fields) => unknown;
  remove?: (item: T, asked: Asked) => unknown;
}

/** The requests to resources of one kind. A list filters by any field. */
export function restOf<T extends Item>(kind: Kind<T>) {
  const { name, all, isListed = () => true, change = Object.assign, create = refuse, remove = refuse } = kind;
  const path = `${name.replaceAll('_', '-')}s`;
  const view = (item: T): Fields => (kind.view?.(item) ?? item) as Fields;
  const isShown = (item: T, { who }: Asked): boolean =>
    item.project_id === who.project || item.isPublic || (kind.isShownToAdmins === true && who.isAdmin);
  /** @throws {Refusal} 404, also for one of another project */
  const find = (asked: Asked, id: string): T => {
    const found = [...all.values()].find((one) => one.id === id && isShown(one, asked));
    if (found === undefined) throw new Refusal(404, `${name} ${id} could not be found.`);
    return found;
  };
  const listed = (item: T): Fields => {
    const hidden = kind.hidden?.(item) ?? [];
    return Object.fromEntries(Object.entries(view(item)).filter(([name]) => !hidden.includes(name)));
  };
  const list = (asked: Asked): Fields[] =>
    [...all.values()]
      .filter((one) => isListed(one) && isShown(one, asked))
      .map(listed)
      .filter((one) => [...asked.query].every(([key, value]) => [one[key]].flat().includes(value)));
  const wantedBy = ({ body }: Asked): Fields => body[name] as Fields;
  const routes: Route[] = [
    ['GET', `${path}(?:/detail)?`, (asked) => ({ [`${name}s`]: list(asked) })],
    ['GET', `${path}/*`, (asked, id) => ({ [name]: view(find(asked, id)) })],
    ['POST', path, (asked) => ({ [name]: view(create(wantedBy(asked), asked)) })],
    [
      'PUT',
      `${path}/*`,
      (asked, id) => {
        const item = find(asked, id);
        change(item, wantedBy(asked));
        return { [name]: view(item) };
      },
    ],
    ['DELETE', `${path}/*`, (asked, id) => void remove(find(asked, id), asked)],
  ];
  return { routes, find };
}

function refuse(): never {
  throw new Refusal(405, 'The method is not allowed for this resource.');
}

/** The metadata of servers or volumes. `find` refuses those that may not take it. */
export function metadataOf(path: string, find: (asked: Asked, id: string) => { metadata: Text }): Route[] {
  const write = (asked: Asked, id: string, isAdded: boolean): Fields => {
    const item = find(asked, id);
    const metadata = asked.body['metadata'] as Text;
    assertMetadata(metadata);
    item.metadata = isAdded ? { ...item.metadata, ...metadata } : metadata;
    return { metadata: item.metadata };
  };
  const remove = (item: { metadata: Text }, key: string): undefined => {
    item.metadata = Object.fromEntries(Object.entries(item.metadata).filter(([one]) => one !== key));
  };
  return [
    ['POST', `${path}/*/metadata`, (asked, id) => write(asked, id, true)],
    ['PUT', `${path}/*/metadata`, (asked, id) => write(asked, id, false)],
    ['DELETE', `${path}/*/metadata/*`, (asked, id, key) => remove(find(asked, id), key)],
  ];
}

/** @throws {Refusal} 400 for a key or a value of more than 255 characters */
export function assertMetadata(metadata: Text): void {
  const texts = Object.entries(metadata).flat();
  if (texts.some(({ length }) => length > 255))
    throw new Refusal(400, 'Invalid input for field/attribute metadata.');
}

/** To the second, as Nova, Neutron and Glance write a time. */
export const toSecond = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;
/** To the microsecond, and without a zone, as Cinder does. */
export const toMicros = (at: number): string => `${new Date(at).toISOString().slice(0, 23)}000`;
