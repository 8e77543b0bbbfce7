// @ts-check
import { link } from "../address.js";
import { TEXTS } from "../texts.js";
import { html, nothing } from "../vendor/lit-html/lit-html.js";
import { repeat } from "../vendor/lit-html/directives/repeat.js";
import { FORMS, formView } from "./forms.js";
import { DEVICE } from "./page-texts.js";
import { findObstacle, findOwnChannel } from "./push.js";
import { ALERTS, reminderChoices, when } from "./texts.js";
/** @import {NotificationActions} from "./dialog.js" */
/** @import {Channel, RecentAlert, Settings} from "./types" */

/** @param {NotificationActions} actions */
export const content = (actions) => {
  const { settings } = actions;
  if (!settings) return nothing;
  const whenOn = () => [deviceView(settings, actions), channelsView(settings, actions), othersView(settings, actions), timesView(settings, actions)];
  return [switchView(settings, actions), settings.on ? whenOn() : nothing, recentView(actions)];
};

/** @param {Settings} settings @param {NotificationActions} actions */
const switchView = ({ on }, actions) => html`
  <label class="check"><input type="checkbox" .checked=${on} @change=${actions.toggle} /> ${ALERTS.on}</label>
  <p class="quiet">${on ? ALERTS.about : ALERTS.off}</p>
`;

/** Says whether this browser gets notifications, or why it cannot. @param {Settings} settings @param {NotificationActions} actions */
function deviceView({ channels, kinds }, actions) {
  const push = kinds.find(({ kind }) => kind === "push");
  const reason = push && !push.possible ? push.why_not : findObstacle();
  const has = findOwnChannel(channels)?.state === "on";
  return html`
    <section aria-labelledby="alerts-device">
      <h3 id="alerts-device">${DEVICE.title}</h3>
      ${has
        ? html`<p>${DEVICE.has}</p>`
        : reason
          ? html`<p>${reason}</p><p class="quiet">${DEVICE.open}</p>`
          : html`<p><button type="button" class="button primary" @click=${actions.addDevice}>${DEVICE.add}</button></p>`}
    </section>
  `;
}

/** @param {Settings} settings @param {NotificationActions} actions */
const channelsView = ({ channels }, actions) => html`
  <section aria-labelledby="alerts-channels">
    <h3 id="alerts-channels">${ALERTS.channels.title}</h3>
    <p class="quiet">${channels.length === 0 ? ALERTS.channels.none : channels.length > 1 ? ALERTS.channels.about : nothing}</p>
    <ol>
      ${repeat(channels, ({ id }) => id, (channel, at) => channelView(channel, at, channel === findOwnChannel(channels), actions))}
    </ol>
  </section>
`;

/** @param {Channel} channel @param {number} at @param {boolean} isOwn whether it is this browser @param {NotificationActions} actions */
function channelView(channel, at, isOwn, actions) {
  const { name, target, state, problem, last_shown_at, last_sent_at } = channel;
  const texts = ALERTS.channels;
  const last = last_shown_at ? texts.shown(when(last_shown_at)) : last_sent_at ? texts.sent(when(last_sent_at)) : "";
  const condition = problem && state === "off" ? texts.stopped(problem.message) : [state === "on" ? texts.on : texts.off, last].filter(Boolean).join(", ");
  const button = (/** @type {string} */ text, /** @type {(event: MouseEvent) => void} */ click) =>
    html`<button type="button" class="text-button" aria-label="${text}: ${name}" @click=${click}>${text}</button>`;
  return html`
    <li>
      <div translate="no">
        <bdi>${name}</bdi> <span class="quiet">(${isOwn ? texts.this : target})</span><br />
        <span class=${problem ? "problem" : "quiet"}>${condition}</span>
        ${problem && state === "on" ? html`<br /><span class="problem">${problem.message}</span>` : nothing}
      </div>
      <div class="buttons">
        ${state === "on" ? button(texts.test, () => actions.test(channel)) : nothing}
        ${at > 0 ? button(texts.up, () => actions.move(channel, at)) : nothing}
        ${button(state === "on" ? texts.turnOff : texts.turnOn, () => actions.turn(channel))} ${button(texts.remove, (event) => actions.remove(channel, event))}
      </div>
    </li>
  `;
}

/** Offers the kinds that are no device, or says why they cannot be added. @param {Settings} settings @param {NotificationActions} actions */
function othersView(settings, actions) {
  const { adding } = actions;
  const kinds = settings.kinds.filter(({ kind }) => kind in FORMS);
  const offer = (/** @type {string} */ kind) =>
    html`<button type="button" class="button" aria-expanded=${adding?.kind === kind} @click=${() => actions.toggleForm(kind)}>${ALERTS.kinds[kind]}</button>`;
  return html`
    <details ?open=${adding !== null}>
      <summary>${ALERTS.others.title}</summary>
      <div class="row">${kinds.map(({ kind, possible }) => (possible ? offer(kind) : nothing))}</div>
      ${kinds.map(({ possible, why_not }) => (possible ? nothing : html`<p class="quiet">${why_not}</p>`))}
      ${adding ? formView(adding, actions) : nothing}
    </details>
  `;
}

/** @param {Settings} settings @param {NotificationActions} actions */
const timesView = ({ remind, digest_time, quiet_from, quiet_until }, actions) => html`
  <section aria-labelledby="alerts-times">
    <h3 id="alerts-times">${ALERTS.when.title}</h3>
    <form class="times" @submit=${actions.save}>
      <label for="alerts-remind">${ALERTS.when.remind}</label>
      <select id="alerts-remind" name="remind">
        ${reminderChoices(remind).map(([value, text]) => html`<option value=${value} ?selected=${value === String(remind)}>${text}</option>`)}
      </select>
      ${timeInput("digest_time", ALERTS.when.digest, digest_time)}
      <p class="quiet">${ALERTS.when.digestHint}</p>
      ${timeInput("quiet_from", ALERTS.when.quietFrom, quiet_from)} ${timeInput("quiet_until", ALERTS.when.quietUntil, quiet_until)}
      <p class="quiet">${ALERTS.when.quietHint}</p>
      <button type="submit" class="button primary">${TEXTS.save}</button>
    </form>
  </section>
`;

/** @param {string} name @param {string} label @param {string | null} time */
const timeInput = (name, label, time) => html`
  <label for="alerts-${name}">${label}</label>
  <input id="alerts-${name}" name=${name} type="time" value=${time?.slice(0, 5) ?? ""} />
`;

/** Lists what became of the last notifications. @param {NotificationActions} actions */
const recentView = ({ recent, titles }) => html`
  <section aria-labelledby="alerts-recent">
    <h3 id="alerts-recent">${ALERTS.recent.title}</h3>
    ${recent?.length === 0 ? html`<p class="quiet">${ALERTS.recent.none}</p>` : nothing}
    <ul>
      ${repeat(recent ?? [], ({ key }) => key, (alert) => recentRow(alert, titles))}
    </ul>
  </section>
`;

/** @param {RecentAlert} alert @param {Map<number, string>} titles */
function recentRow({ kind, tasks, alert_at, late, state, deliveries }, titles) {
  const texts = ALERTS.recent;
  const ways = deliveries.map((delivery) => {
    const words = texts.deliveries[delivery.state];
    return words?.(delivery.channel, when(delivery.at), delivery.problem?.message ?? "") ?? delivery.state;
  });
  const outcome = [late && texts.late, ...(ways.length > 0 ? ways : [texts.states[state] ?? state])].filter(Boolean).join("; ");
  const named = tasks.map((id) => html`<a href=${link({ task: id })} dir="auto" @click=${closeDialog}>${titles.get(id) ?? texts.task(id)}</a> `);
  return html`
    <li translate="no">
      <div>${kind === "task" && named.length > 0 ? named : (texts.kinds[kind] ?? kind)}</div>
      <div class="quiet"><time datetime=${alert_at}>${when(alert_at)}</time>: <bdi>${outcome}</bdi></div>
    </li>
  `;
}

/** The page shows the task that the link names. @param {MouseEvent} event */
const closeDialog = ({ target }) => /** @type {Element} */ (target).closest("dialog")?.close();
