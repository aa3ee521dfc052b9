import { z } from 'zod';
import { toIssues } from '../../contract/issue-words.ts';
import { DAY_MS, HOUR_MS } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import { titleOf } from '../columns.ts';
import type { Actor } from '../model.ts';
import { type FormSpec, kindOf, type Operation } from '../operation.ts';
import { toTime } from '../views/values.ts';
import type { PageContent, PageRequest } from './deps.ts';
import { csrfField } from './layout.ts';
import { cutName, given, type Html, html, withQuery } from './parts.ts';

type Fields = Readonly<Record<string, string | null | undefined>>;
type Read = (name: string) => string | undefined;

/**
 * Returns the path, below the console, of the page that shows what an action would do. The page's form is sent to the
 * same path.
 */
export function actionPath(name: string): string {
  return `/actions/${name}`;
}

/** Renders a link to the page that shows what the action would do. */
export function actionLink({ name }: { name: string }, text: string, fields: Fields): Html {
  const query = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, value ?? undefined]));
  return html`<a class="button" href="${withQuery(`/console${actionPath(name)}`, query)}">${text} …</a>`;
}

/** Renders a form whose button carries out the action. `content` precedes the button. */
export function actionForm(
  { name, form }: { name: string; form?: { button: string } | undefined },
  csrf: string,
  fields: Fields,
  {
    button = form?.button,
    className = '',
    buttonClass = '',
    content = '' as Html | string,
    after = '' as Html | string,
  } = {},
): Html {
  return html`<form class="${className}" method="post" action="/console${actionPath(name)}">${csrfField(csrf)}${Object.entries(
    fields,
  ).map(([field, value]) =>
    value === null || value === undefined ? '' : html`<input type="hidden" name="${field}" value="${value}">`,
  )}${content}<button class="${buttonClass}">${button}</button>${after}</form>`;
}

/** Renders a form with a field for each input that the action asks for. An action with a plan shows it next. */
export function askingForm<Deps>(action: Operation<Deps>, csrf: string): Html | '' {
  const { form, input, summary } = action;
  if (form?.below === undefined) return '';
  const asks = form.below.asks.map((name) => inputOf(name, input[name]));
  const content = html`<h2 class="wide">${summary}</h2>${asks}`;
  if ((action.dryRun ?? form.preview) === undefined)
    return actionForm(action, csrf, {}, { className: 'card row', buttonClass: 'primary', content });
  return html`<form class="card row" action="/console${actionPath(action.name)}">${content}<button class="primary">${form.button} …</button></form>`;
}

/** A field for an input: what it must have is required. */
function inputOf(name: string, schema: z.ZodType | undefined, chosen?: string): Html {
  const title = titleOf({ field: name });
  const isRequired = schema?.safeParse(undefined).success === false;
  const options = optionsOf(schema);
  if (options !== undefined)
    return html`<label class="field"><span>${title}</span><select name="${name}" ${isRequired ? 'required' : ''}>${options.map((option) => html`<option value="${option}" ${option === chosen ? 'selected' : ''}>${option}</option>`)}</select></label>`;
  if (kindOf(name, schema) === 'switch')
    return html`<label class="field check"><input type="checkbox" name="${name}" value="yes"><span>${title}</span></label>`;
  const hint = kindOf(name, schema) === 'time' ? '2h, 7d or 2030-01-01T00:00:00Z' : '';
  return html`<label class="field"><span>${title}</span><input name="${name}" maxlength="255" placeholder="${hint}" ${isRequired ? 'required' : ''}></label>`;
}

function optionsOf(schema: z.ZodType | undefined): readonly string[] | undefined {
  if (schema instanceof z.ZodEnum) return schema.options.map(String);
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault
    ? optionsOf(schema.unwrap() as z.ZodType)
    : undefined;
}

/** Renders what the action would do, and the button that carries it out. Null if the action has no such page. */
export async function actionPage<Deps>(
  action: Operation<Deps>,
  deps: Deps,
  { query, now, session }: PageRequest,
): Promise<PageContent | null> {
  const { form } = action;
  if (form === undefined || (action.dryRun ?? form.preview) === undefined) return null;
  const given = { ...readFields(action, form, query, now), ...form.dryRunWith };
  const input = parse(action, given);
  const reply = (await action.dryRun?.(deps, input)) as { effect: string } | undefined;
  const sentences = (await form.preview?.(reply, deps, input)) ?? [];
  const sent = form.send?.(reply) ?? textsOf(given);
  const title = cutName(form.title(input));
  const page = form.page(input);
  return { title, body: bodyOf(action, form, { title, sentences, reply, sent, csrf: session.csrf, page }) };
}

interface Shown {
  title: string;
  sentences: readonly string[];
  reply: { effect: string } | undefined;
  sent: Fields;
  csrf: string;
  page: string;
}

function bodyOf<Deps>(
  action: Operation<Deps>,
  { isDangerous }: FormSpec<Deps>,
  { title, sentences, reply, sent, csrf, page }: Shown,
): Html {
  return html`<h1>${title}</h1>
<div class="notice ${isDangerous ? 'bad' : 'wait'}"><h2>What would happen</h2>${sentences.map(
    (sentence) => html`<p>${given(sentence)}</p>`,
  )}${reply === undefined ? '' : html`<p>Then ${reply.effect}.</p>`}<p class="label">This is a dry run: nothing has changed.</p></div>
${actionForm(action, csrf, sent, {
  className: 'card row',
  buttonClass: isDangerous ? 'danger' : 'primary',
  content:
    action.dryRun !== undefined && 'reason' in action.input
      ? html`<label class="field grow"><span>Reason (for the audit log)</span><input name="reason" maxlength="200"></label>`
      : '',
  after: html`<a class="button" href="${page}">Cancel</a>`,
})}${otherPlans(action, sent)}`;
}

/** A form for each input with a choice, which shows the plan for another one. */
function otherPlans<Deps>({ name, input, dryRun }: Operation<Deps>, sent: Fields): Html[] {
  const choices = Object.entries(input).filter(
    ([, schema]) => dryRun !== undefined && schema instanceof z.ZodDefault && optionsOf(schema),
  );
  return choices.map(([field, schema]) => {
    const others = Object.entries({ ...sent, [field]: undefined });
    return html`<form class="card row" action="/console${actionPath(name)}">${others.map(([other, value]) =>
      typeof value === 'string' ? html`<input type="hidden" name="${other}" value="${value}">` : '',
    )}${inputOf(field, schema, sent[field] ?? undefined)}<button>Show this plan</button></form>`;
  });
}

/** Shows a secret, once. */
export function secretPage(secret: string, next: string): PageContent {
  return {
    title: 'Keep this now',
    body: html`<h1>Keep this now: it is not shown again</h1>
<div class="card"><pre>${secret}</pre></div><p><a class="button" href="${next}">I have it</a></p>`,
  };
}

/** Carries out the action of a form. Returns the path of the next page, and the secret to be shown before it. */
export async function performForm<Deps>(
  action: Operation<Deps>,
  deps: Deps,
  { actor, field, now }: { actor: Actor; field: Read; now: number },
): Promise<{ next: string; secret: string | undefined }> {
  const { form } = action;
  if (form === undefined) throw new Fatal('The console has no form for this action.');
  const input = parse(action, { ...readFields(action, form, field, now), dry_run: false });
  const reply = await action.perform(deps, actor, input);
  return { next: form.page(input), secret: form.secret?.(reply) };
}

function readFields<Deps>(
  { input }: Operation<Deps>,
  form: FormSpec<Deps>,
  field: Read,
  now: number,
): Record<string, unknown> {
  if (form.parse !== undefined) return form.parse(field, now);
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, schema]) => {
      const text = field(name);
      if (text === undefined) return [];
      const kind = kindOf(name, schema);
      return [[name, kind === 'switch' ? text === 'yes' : kind === 'time' ? toTimeToCome(text, now) : text]];
    }),
  );
}

const SPAN = /^(\d{1,6}) ?([mhd])$/;
const SPAN_MS: Readonly<Record<string, number>> = { m: 60_000, h: HOUR_MS, d: DAY_MS };

/** A time as it is, or in `30m`, `2h` or `7d`. */
function toTimeToCome(text: string, now: number): string {
  const [, count, unit = ''] = SPAN.exec(text) ?? [];
  return count === undefined ? text : toTime(now + Number(count) * (SPAN_MS[unit] ?? 0));
}

/** @throws {Fatal} if a field is missing or invalid */
function parse<Deps>({ input }: Operation<Deps>, values: Record<string, unknown>): Record<string, unknown> {
  const parsed = z.object(input).safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = toIssues({ error: parsed.error, data: values });
  throw new Fatal(`The form is incomplete or invalid: ${issue?.path}: ${issue?.message}.`);
}

function textsOf(values: Record<string, unknown>): Fields {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'boolean' ? (value ? 'yes' : undefined) : (value as string | undefined),
    ]),
  );
}
