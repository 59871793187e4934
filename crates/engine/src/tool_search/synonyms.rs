//! Words that people use for one another where they ask for a tool, in English and, for the most usual, in other languages.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::words::stem;

/// Each line is words that may stand for one another; the first ones are those of names of tools. A word may be in several.
const GROUPS: &str = "
create add new make open insert write put compose draft register build erstelle erstellen anlegen neu creer cree crear crea nuevo nouveau nouvelle
delete remove erase drop destroy purge clear wipe discard rid trash tear loschen losche entfernen supprimer supprime efface eliminar elimina borrar borra
update edit change modify set alter adjust rename fix andern andere bearbeiten modifier modifie changer cambiar modificar actualizar
get read show view fetch display see look return zeige zeig anzeigen lesen montre montrer affiche afficher lire muestra mostrar leer ver
list all every which browse enumerate overview liste auflisten lister listar
search find query look lookup locate seek discover suche suchen finde finden cherche chercher trouver trouve busca buscar encontrar
send post mail write deliver message notify tell announce schicke schick senden sende envoyer envoie enviar envia
reply answer respond response antworte antworten beantworten repondre reponds responder responde
forward pass relay weiterleiten
share access permission grant invite allow give teilen freigeben partager compartir
move transfer relocate shift push verschieben verschiebe deplacer deplace mover mueve
copy duplicate clone replicate kopieren kopiere copier copie copiar copia
merge join combine land integrate unite
approve accept confirm agree ok
decline reject refuse deny no
cancel abort stop halt end quit abbrechen stornieren annuler annule cancelar cancela
start run launch begin trigger kick execute boot spin fire starte starten lancer demarrer demarre iniciar inicia ejecutar
stop shut halt turn off pause down anhalten stoppen arreter arrete parar detener
restart reboot rerun retry again repeat
download get fetch save export pull herunterladen telecharger telecharge descargar descarga
upload put push store add hochladen televerser subir sube
convert transform turn change export umwandeln konvertieren convertir convierte
translate translation ubersetze ubersetzen ubersetzung traduire traduis traducir traduce
summarize summary digest overview sum zusammenfassen zusammenfassung resume resumer resumir
schedule plan later appointment
reschedule move postpone push shift delay verschieben reporter aplazar
remind reminder erinnere erinnerung rappelle rappel recuerdame recordatorio
assign hand give delegate owner responsible
resolve close solve finish done complete fix
transition status state done progress
silence mute ignore snooze quiet
email mail message inbox letter mails emails nachricht courriel correo
message post chat dm nachricht mensaje
calendar agenda schedule diary kalender calendrier calendario
event meeting appointment invitation invite termin treffen rendez reunion cita
ticket issue task bug story problem defect request case
issue bug error problem defect ticket
error crash exception failure bug fault
incident outage alert page down wake
log output print record trace console
ci build pipeline workflow action job
repository repo project code source
code source function sources program
pull pr merge review
review look check inspect
comment remark feedback
note write notes jot record
document doc file paper text dokument documento
file attachment document datei dateien fichier fichiers archivo archivos
folder directory ordner dossier carpeta
picture image photo photograph bild bilder foto imagen imagenes photos
draw paint generate create design zeichne male dessine dibuja
video clip film movie
song music track tune lied musik musique chanson musica cancion
play listen hear spiele spiel joue jouer reproduce
volume loud louder quiet quieter
money funds cash balance geld argent dinero
pay charge bill debit payment zahlen bezahlen payer pagar
refund money back return reimburse
invoice bill rechnung facture factura
price cost fare quote cheap cheapest preis prix precio
buy purchase order book kaufen acheter comprar
customer client buyer consumer user kunde kunden client cliente
employee person people user member colleague staff
order purchase parcel delivery shipment bestellung commande pedido
stock inventory warehouse quantity pieces
share stock equity aktie aktien action accion
exchange convert currency rate
cart basket checkout
product item article produkt produit producto
newsletter campaign mailing
weather forecast rain sun temperature snow wetter meteo tiempo clima
tomorrow daily day morgen demain manana
warm temperature heat thermostat heating hot cold
light lamp bulb licht lampe lumiere luz
house home room living kitchen
flight plane fly airline flug fluge vol avion vuelo
hotel room accommodation stay
train rail railway zug bahn tren
route directions way navigate path weg itineraire ruta
foot walk walking pedestrian
restaurant food pizza eat cafe
near nearby close around nahe proche cerca
address location place where
sleep slept night schlaf sommeil
pollution air dirty quality smog luft
share stock quote price
server machine vm instance host computer
container docker image pod
scale replicas copies instances
rollback revert back previous undo
infrastructure cloud resources
table relation spreadsheet
row line record entry zeile ligne fila
record document entry row
cell range value
sort order arrange rank
sql query select statement
slow performance latency duration long
explain plan why
cache store key ttl
expire ttl hour time
size large big storage space
storage space disk quota room memory
link url address
temporary expire limited
version revision history older earlier previous
history change changed versions who when
blame who author changed
access permission right role share
block ban throw banish remove forbid
ban throw out exclude expel
kick throw out remove
vote poll survey ballot
emoji reaction react thumbs
thread replies conversation answered
announcement post message announce
customer buyer client
satisfaction happy satisfied rating
support help service
call phone telephone phoned
activity call meeting logged
sales sell revenue sold
forecast outlook predict prediction next
holiday vacation away absence absent office urlaub conges vacaciones
vacation holiday out office absent
unsubscribe newsletter stop
attendee guest participant everybody
free available slot time meet
protect lock guard restrict push
branch main master
points estimate effort
worklog time spent hours
release publish version changelog ship
notes changelog
wiki article page knowledge
note page notizen
transcript text said caption subtitles
text words
background subject cutout
screenshot capture picture
appointment doctor visit
doctor physician arzt medecin medico
weight body
visa papers passport
status late delayed time
ticket fare seat
metric chart plot graph cpu time
oncall call duty shift
acknowledge looking attend care
basket cart
abandoned left
ship fulfill send parcel deliver way
report open create raise submit
publish create release
holiday vacation out office responder absent
postpone push reschedule move back
scale replicas copies pods instances
plot chart graph draw query metrics series
responsible charge call duty owner
flight number gate time late status
put play on
jazz rock pop classical music song track
bug issue error ticket
publish release version ship rollout
used usage reference occurrence search
sprint burndown progress track velocity
track progress status burndown
everybody attendees people team all
channel general room group team
tell send message inform notify
mail email address
late delay delayed
dentist doctor appointment physician
lunch meal event
holiday vacation responder office leave
many count number amount total
user member account customer document record
wipe flush empty delete all clear
empty clear remove
data database documents records
whole all everything entire database
copy copies replica replicas instance
web website site page http
app application software project service program
today now current daily
used use usage consumption
plot chart graph metric metrics series query
responsible owner call duty lead assigned
tonight now night today
breaks incident outage failure
down outage incident unavailable unreachable
wake page trigger incident alert
site website service page
twice duplicate duplicates double again
same duplicate equal alike identical
request ticket case demand
jazz rock pop music song genre
loud volume quiet
down lower less quieter reduce decrease turn
up higher more louder increase raise
warmer temperature heat thermostat heating
cooler temperature thermostat cooling
living room house home
station stop place transit
museum place sight
foot walking walk
plane flight aircraft airline
flight plane airline travel
dollars euros pounds currency exchange money
euro currency exchange rate
dollar currency exchange rate
much price cost amount
apple google tesla company symbol share
share stock symbol quote
doing performance price status
cat dog picture subject
clean clear prune vacuum remove free tidy
clean prune purge tidy
old unused stale outdated previous
disk storage space volume
full storage quota space
folder directory context path
biggest large size top most
record document row entry object
picture photo object file
access permission share role
file document sheet
who user person author
changed edit change modify history version
article page post
museum station origin destination
";

static ALL: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<String>> = HashMap::new();
    for line in GROUPS.lines().filter(|line| !line.is_empty()) {
        let group: Vec<String> = line.split(' ').map(stem).collect();
        for word in &group {
            let known = all.entry(word.clone()).or_default();
            for other in group.iter().filter(|other| *other != word) {
                if !known.contains(other) {
                    known.push(other.clone());
                }
            }
        }
    }
    all
});

/// The stems of words that may stand for this stem.
pub(super) fn of(stem: &str) -> impl Iterator<Item = &'static str> {
    ALL.get(stem).into_iter().flatten().map(String::as_str)
}
